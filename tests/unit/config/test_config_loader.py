"""Reading: every fault at once, each with its place, in words that say what to write."""

from __future__ import annotations

from pathlib import Path

import pytest

from laya_desktop.config.loader import check_form, load_text
from laya_desktop.config.schema import NodeConfig
from laya_desktop.config.store import load_file
from laya_desktop.errors import ConfigError


def faults(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load_text(text, "f")
    return [p.render("f") for p in caught.value.problems]


MODEL = "models:\n  - name: a\n    path: a.gguf\n"


def test_the_long_form_of_the_design_loads() -> None:
    config = load_text(
        MODEL
        + """    device: auto
    queue: {policy: fifo, max_waiting: 64, max_wait: 120s}
upstreams:
  - {name: big-box, url: "http://192.168.1.20:5292/v1", api_key: "keyring:big-box", health: {path: /health}}
routes:
  - name: chat
    match: {prefix: /v1/model}
    target: a
    priority: normal
    timeout: 300s
  - name: users
    match: {regex: "/u/(?P<id>[0-9]+)/chat", use_regex: true}
    target: big-box
"""
    )

    assert config.target_names == ("a", "big-box")
    assert config.routes[0].timeout == 300.0
    assert config.routes[1].match.regex == "/u/(?P<id>[0-9]+)/chat"


@pytest.mark.parametrize("text", ["", "\n", "# nothing yet\n", "models:\nroutes:\n", "---\n", "\ufeff# with a mark\n"])
def test_an_empty_file_means_the_defaults(text: str) -> None:
    assert load_text(text) == NodeConfig()


def test_a_misspelt_key_is_named_with_its_line_and_the_near_one() -> None:
    found = faults(MODEL + "routes:\n  - name: r\n    match: {prefix: /x}\n    tagret: a\n")

    assert "f:7:5: routes[0].tagret: Unknown key 'tagret'. Did you mean 'target'?" in found
    assert any(line.startswith("f:5:5: routes[0].target: The key 'target' is missing.") for line in found)


def test_all_problems_of_all_kinds_show_at_once() -> None:
    found = faults(
        """server: {port: 99999, port: 1}
guard: {mem_fraction: 1.5}
models:
  - name: a
    path: a.gguf
    batch_size: four
    device: gpuu
  - name: a
    path: b.gguf
routes:
  - name: r
    match: {prefix: /x}
    target: b
  - name: r
    match: {}
    target: a
"""
    )

    assert [line.split(": ")[1] for line in found] == [
        "server.port",
        "server.port",
        "guard.mem_fraction",
        "models[0].batch_size",
        "models[0].device",
        "models[1].name",
        "routes[0].target",
        "routes[1].name",
        "routes[1].match",
    ]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("server: {port: 99999}", "'99999' is out of range. Write a whole number from 0 to 65535."),
        ("server: {port: yes}", "Not a number. Write digits, e.g. 4."),
        ("server: {port: [1]}", "Write a whole number from 0 to 65535."),
        ("server: {host: '127.0.0.1:80'}", "A host has no port. Write host: 127.0.0.1 and port: 80."),
        ("server: {api_keys: abc}", "A list is expected here, but this is a single value."),
        ("log: {level: inof}", "Unknown level 'inof'. Write debug, info, warn or error. Did you mean 'info'?"),
        ("log: [1]", "Keys with values are expected here, but this is a list."),
        ("guard: {mode: shde}", "Unknown mode 'shde'. Write off, warn or shed. Did you mean 'shed'?"),
        ("guard: {reserve_ram: lots}", "Not a size. Write 512MiB or 2GiB."),
        ("guard: {mem_fraction: 0}", "'0' is out of range. Write a number above 0 and up to 1, e.g. 0.8."),
        (MODEL + "    batch_size: four", "'four' does not fit here. Write a whole number from 1 to 256."),
        (MODEL + "    batch_size: 2.5", "'2.5' does not fit here. Write a whole number from 1 to 256."),
        (MODEL + "    batch_size:", "The value is empty. Write a whole number from 1 to 256."),
        (MODEL + "    gpu_layers: atuo", "Write auto, or a whole number from 0 to 10000. Did you mean 'auto'?"),
        (MODEL + "    preload: 7", "'7' does not fit here. Write true or false."),
        (MODEL + "    idle_unload: 10 parsecs", "Not a duration. Write 300s, 5m or 1h."),
        (MODEL + "    idle_unload: 0", "A duration above zero is needed here."),
        ("models: [{path: a}]", "The key 'name' is missing. Write name: NAME."),
        ("models: [{name: on, path: a}]", 'on is read as true or false, not as text. Put it in quotes: "on".'),
        ("models: [{name: 7, path: a}]", '7 is read as a number, not as text. Put it in quotes: "7".'),
        ("models: [{name: 2026-12-01, path: a}]", '2026-12-01 is read as a date, not as text. Put it in quotes: "2026'),
        ("models: [{name: [a], path: a}]", "Text is expected here, but this is a list."),
        ("models: [a]", "Keys with values are expected here, but this is a single value."),
        ("models: {name: a}", "A list is expected here, but this is a mapping."),
        ("upstreams: [{name: u, url: 'ftp://x'}]", "An upstream's url starts with http:// or https://"),
        ("upstreams: [{name: u, url: 'http://me:pw@x'}]", "Put the key into api_key."),
        ("upstreams: [{name: u, url: 'http://x:99999'}]", "'99999' is not a port."),
        ("upstreams: [{name: u, url: 'http://x', api_key: 'keyring:'}]", "Write keyring:NAME."),
    ],
)
def test_messages_say_what_is_wrong_and_what_to_write(text: str, line: str) -> None:
    found = faults(text)

    assert len(found) == 1
    assert line in found[0]


@pytest.mark.parametrize(
    ("match", "line"),
    [
        ("{}", "found none of them"),
        ("{path: /a, prefix: /b}", "found both path and prefix"),
        ("{prefix: a}", "A path starts with '/'. Write '/a'."),
        ("{prefix: '/a?b'}", "no query string"),
        ("{prefix: '/a b'}", "Write a space as %20."),
        ("{prefix: /admin/x}", "The node itself answers /admin."),
        ("{path: /health}", "The node itself answers /health."),
        ("{prefix: /metrics}", "The node itself answers /metrics."),
        ("{regex: /a}", "Write use_regex: true beside it"),
        ("{prefix: /a, use_regex: true}", "use_regex: true has no regex beside it."),
        ("{regex: '(', use_regex: true}", "Not a regular expression that RE2 accepts: missing ): (."),
        ("{prefix: /a, headers: {'a b': c}}", "'a b' is not a header name."),
        ("{prefix: /a, headers: {X-A: 1}}", '1 is read as a number, not as text. Put it in quotes: "1".'),
        ("{prefix: /a, headers: {X-A: a, x-a: b}}", "'X-A' and 'x-a' are one header"),
        ("{prefix: /a, headers: {on: a}}", 'Put it in quotes: "on".'),
        ("{prefix: /a, methods: [FETCH]}", "Write GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS."),
        ("{prefix: /a, host: 'http://x/y'}", "Not a Host header."),
        ("{prefx: /a}", "Unknown key 'prefx'. Did you mean 'prefix'?"),
    ],
)
def test_what_a_match_refuses(match: str, line: str) -> None:
    found = faults(f"{MODEL}routes:\n  - name: r\n    match: {match}\n    target: a\n")

    assert len(found) == 1
    assert line in found[0]


def test_a_regex_that_needs_permission_and_is_wrong_shows_both_faults() -> None:
    found = faults(MODEL + "routes:\n  - name: r\n    match: {regex: '('}\n    target: a\n")

    assert len(found) == 2


@pytest.mark.parametrize("path", ["/healthz", "/administration", "/v1/admin", "/"])
def test_paths_beside_the_reserved_ones_are_allowed(path: str) -> None:
    config = load_text(f"{MODEL}routes:\n  - name: r\n    match: {{prefix: {path}}}\n    target: a\n")

    assert config.routes[0].match.prefix == path


def test_a_dangling_target_shows_beside_other_faults() -> None:
    found = faults(MODEL + "    batch_size: 0\nroutes:\n  - name: r\n    match: {prefix: /x}\n    target: aa\n")

    assert len(found) == 2
    assert found[1].startswith("f:8:5: routes[0].target: No model or upstream 'aa'.")


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("a: &x 1\nb: *x", "f:1:4", "Anchors"),
        ("a: !!python/object:os.system x", "f:1:4", "The tag '!!python/object:os.system'"),
        ("version: 1\n---\nversion: 1", "f:2:1", "second YAML document"),
        ("- a", "f:1:1", "'key: value' lines"),
        ("hello", "f:1:1", "'key: value' lines"),
        ("[" * 40, "f:1:33", "deep"),
        ("[" * 100_000, "f:1:1001", "Nested more than 32 deep"),
        ("server:\n\tport: 1", "f:2:1", "A tab stands here"),
        ("server: {port: 1", "f:2:1", "Not valid YAML"),
        ("a: \x01", "f:1:4", "control character"),
        ("x: 1\nversion: 1\nversion: 1", "f:3:1", "written twice; the first one is on line 2"),
        ("? [a]\n: b", "f:1:3", "A key is one word"),
        ("version: 2\nmodles: 3", "f:1:1", "This file has version 2; this program reads up to version 1."),
        ("version: one", "f:1:1", "Write version: 1."),
        ("server: {port: 010}", "f:1:16", "one thing to YAML 1.1 and another to YAML 1.2"),
        ("server: {port: 0o10}", "f:1:16", "one thing to YAML 1.1"),
        ("server: {port: 1:20}", "f:1:16", "one thing to YAML 1.1"),
        ("guard: {mem_fraction: 1e-1}", "f:1:23", "one thing to YAML 1.1"),
        ("server: {port: " + "9" * 5000 + "}", "f:1:16", "cannot be read as a value"),
        ("1: 2", "f:1:1", "Put it in quotes"),
    ],
)
def test_what_yaml_may_hold_is_bounded(text: str, place: str, words: str) -> None:
    found = faults(text)

    assert any(line.startswith(f"{place}: ") and words in line for line in found)


def test_switch_words_are_taken_as_meant() -> None:
    config = load_text(MODEL + "    preload: yes\nguard: {mode: off}\nserver: {port: 1_000}\n")

    assert (config.models[0].preload, config.guard.mode, config.server.port) == (True, "off", 1000)


def test_secrets_are_not_repeated_in_messages() -> None:
    found = faults("server: {api_keys: [12345678], admin_key: 87654321}")

    assert len(found) == 2
    assert not any("1234" in line or "8765" in line for line in found)


def test_form_data_gets_the_same_messages_without_lines() -> None:
    with pytest.raises(ConfigError) as caught:
        check_form({"models": [{"name": "a", "path": "x", "batch_size": "four"}]})

    (problem,) = caught.value.problems
    assert problem.line is None
    assert problem.key == "models[0].batch_size"
    assert "from 1 to 256" in problem.message


def test_a_file_that_is_too_large_or_no_text_is_refused(tmp_path: Path) -> None:
    large, binary = tmp_path / "large.yaml", tmp_path / "binary.yaml"
    large.write_bytes(b"#" * (1024**2 + 1))
    binary.write_bytes(b"a: 1\nb: \xff\n")

    for path, words in ((large, "1 MiB at most"), (binary, "binary.yaml:2:4: Not UTF-8")):
        with pytest.raises(ConfigError, match=words):
            load_file(path)


def test_what_is_no_file_is_refused_with_a_near_name(tmp_path: Path) -> None:
    (tmp_path / "laya.yaml").touch()

    for path, words in ((tmp_path, "a folder"), (tmp_path / "lyaa.yaml", "Did you mean 'laya.yaml'")):
        with pytest.raises(ConfigError, match=words):
            load_file(path)


def test_faults_of_a_match_and_of_its_route_show_together() -> None:
    with pytest.raises(ConfigError) as caught:
        load_text("routes:\n  - name: users\n    match:\n      regex: /u/x\n      use_    target: b\n")
    keys = {p.key for p in caught.value.problems}
    assert {"routes[0].target", "routes[0].match.regex"} <= keys
