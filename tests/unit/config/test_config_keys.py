"""Keys of callers: written three ways, made, revoked, masked, and shown nowhere."""

from __future__ import annotations

import hashlib
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laya_desktop.config.changes import describe as differences
from laya_desktop.config.key_edits import with_new_admin_key, with_new_key, without_admin_key, without_key
from laya_desktop.config.keys import ApiKey, describe, digest, usable
from laya_desktop.config.loader import load_text
from laya_desktop.config.masking import hide_secrets, masked, restore
from laya_desktop.config.report import warnings
from laya_desktop.config.schema import NodeConfig
from laya_desktop.config.store import ConfigDocument
from laya_desktop.errors import ConfigError, LayaError

TODAY = date(2026, 12, 1)
SECRET = "hunter2-hunter2"
HASH = "sha256:" + hashlib.sha256(SECRET.encode()).hexdigest()
OTHER = "sha256:" + hashlib.sha256(b"another").hexdigest()
WHOLE = f"""
server:
  api_keys:
    - {SECRET}   # old
    - {OTHER}
    - {{name: laptop, hash: "{HASH}", created: 2026-12-01}}
  admin_key: {SECRET}-admin
upstreams:
  - {{name: a, url: "http://a/v1", api_key: {SECRET}-a}}
  - {{name: b, url: "http://b/v1", api_key: "keyring:b"}}
routes:
  - {{name: r, match: {{prefix: /r, headers: {{Authorization: "Bearer {SECRET}", X-Team: red}}}}, target: a}}
"""


@pytest.fixture
def config() -> NodeConfig:
    return load_text(WHOLE)


def secrets_of(config: NodeConfig) -> list[str]:
    return [SECRET, HASH, OTHER, f"{SECRET}-admin", f"{SECRET}-a"]


def test_three_ways_to_write_a_key(config: NodeConfig) -> None:
    plain, hashed, named = config.server.api_keys
    assert (plain, hashed) == (SECRET, OTHER)
    assert named == ApiKey(name="laptop", hash=HASH, created=TODAY)
    assert digest(plain) == digest(named)
    assert [describe(k).plain for k in config.server.api_keys] == [True, False, False]
    assert describe(named).label == "laptop"


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        (f"[{{name: a, hash: {SECRET}}}]", "A hash is written"),
        (f"[{{name: '', hash: '{HASH}'}}]", "1 to 64 characters"),
        (f"[{{name: a, hash: '{HASH}'}}, {{name: a, hash: '{HASH}'}}]", "same name"),
        (f"[{{name: a, hsah: '{HASH}'}}]", "Did you mean 'hash'?"),
        ("[123456789]", "text in quotes"),
        ("[0123456789]", "in quotes"),
        ("[[hunter2-hunter2]]", "text in quotes"),
        ("hunter2-hunter2", "A list is expected"),
        ("['hunter2 hunter2']", "no spaces"),
    ],
)
def test_a_wrong_key_is_refused_without_repeating_it(keys: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_text(f"server:\n  api_keys: {keys}")
    assert says in str(caught.value)
    assert not [s for s in ("hunter2", "123456789", HASH) if s in str(caught.value)]


def test_a_new_key_is_kept_as_its_hash_and_can_be_saved_and_read(tmp_path: Path) -> None:
    file = tmp_path / "laya.yaml"
    file.write_text("server:\n  port: 0   # any\n  api_keys: []\nmodels: []\n")
    document = ConfigDocument.load(file)
    changed, key = with_new_key(document.config, "laptop", TODAY)
    assert key.startswith("laya-")
    assert len(key) == len("laya-") + 43
    saved = document.save(changed)
    text = file.read_text()
    assert "# any" in text
    assert key not in text
    assert ConfigDocument.load(file).config == changed == saved.config
    changed, _ = with_new_key(changed, "phone", TODAY)
    saved = saved.save(changed)
    assert [describe(k).label for k in ConfigDocument.load(file).config.server.api_keys] == ["laptop", "phone"]
    saved.save(without_key(changed, "laptop"))
    assert [describe(k).label for k in ConfigDocument.load(file).config.server.api_keys] == ["phone"]


def test_the_block_form_keeps_its_comments_when_a_key_comes_or_goes(tmp_path: Path) -> None:
    file = tmp_path / "laya.yaml"
    file.write_text(WHOLE)
    document = ConfigDocument.load(file)
    changed, _ = with_new_key(document.config, "phone", TODAY)
    document = document.save(changed)
    assert f"- {SECRET}   # old" in file.read_text()
    assert ConfigDocument.load(file).config == changed
    label = describe(SECRET).label
    document.save(without_key(changed, label))
    assert "# old" not in file.read_text()
    assert len(ConfigDocument.load(file).config.server.api_keys) == 3


def test_names_are_unique_and_known(config: NodeConfig) -> None:
    with pytest.raises(LayaError, match="already"):
        with_new_key(config, "laptop", TODAY)
    with pytest.raises(LayaError, match="Did you mean 'laptop'"):
        without_key(config, "lapto")
    with pytest.raises(LayaError, match="1 to 64 characters"):
        with_new_key(config, " x", TODAY)


def test_an_unnamed_key_is_revoked_by_its_label_which_says_nothing_of_it(config: NodeConfig) -> None:
    label = describe(SECRET).label
    assert without_key(config, label).server.api_keys == config.server.api_keys[1:]
    assert label.removeprefix("unnamed ") not in HASH


def test_the_admin_key_is_made_and_revoked() -> None:
    changed, key = with_new_admin_key(NodeConfig(), TODAY)
    kept = changed.server.admin_key
    assert isinstance(kept, ApiKey)
    assert digest(kept) == hashlib.sha256(key.encode()).digest()
    assert without_admin_key(changed).server.admin_key is None
    with pytest.raises(LayaError):
        without_admin_key(NodeConfig())


def test_no_secret_is_in_a_repr_or_a_difference(config: NodeConfig) -> None:
    lines = [*differences(NodeConfig(), config), *differences(config, NodeConfig())]
    other = load_text(WHOLE.replace(SECRET, "swordfish-swordfish").replace(HASH, "sha256:" + "0" * 64))
    lines += differences(config, other)
    for text in (repr(config), str(config), f"{config.server!r}", f"{config.routes!r}", *lines):
        assert not [s for s in secrets_of(config) if s in text], text
        assert "swordfish" not in text
    assert "server: api_keys: 3 added" in lines
    assert "server: api_keys: 3 removed" in lines
    assert "upstream a: api_key changed" in lines
    assert "keyring:b" in repr(config)


def test_no_secret_is_in_the_difference_of_files(tmp_path: Path) -> None:
    file = tmp_path / "laya.yaml"
    file.write_text(WHOLE + "# laya-0123456789abcdef0123 was the old key\n")
    document = ConfigDocument.load(file)
    changed, _ = with_new_key(without_key(document.config, "laptop"), "phone", TODAY)
    raw = document.diff(changed)
    text = hide_secrets(raw, document.config, changed)
    hashes = [k.hash for k in changed.server.api_keys if isinstance(k, ApiKey)]
    assert [s for s in (SECRET, HASH, *hashes) if s in raw]
    assert not [s for s in (*secrets_of(document.config), *hashes, "0123456789abcdef0123") if s in text], text
    assert "phone" in text


def test_masked_and_back(config: NodeConfig) -> None:
    data = masked(config)
    assert not [s for s in secrets_of(config) if s in str(data)]
    assert data["upstreams"][1]["api_key"] == "keyring:b"
    assert data["routes"][0]["match"]["headers"]["X-Team"] == "red"
    back = NodeConfig.model_validate(data)
    assert back != config
    assert usable(back.server.api_keys) == ()
    assert restore(back, config) == config


def test_masked_keys_may_change_places_and_go(config: NodeConfig) -> None:
    data = masked(config)
    data["server"]["api_keys"] = data["server"]["api_keys"][:0:-1]
    assert restore(NodeConfig.model_validate(data), config).server.api_keys == config.server.api_keys[:0:-1]


@pytest.mark.parametrize("change", [{"url": "http://evil/v1"}, {"api_key": "masked:" + "0" * 32}])
def test_an_upstreams_masked_key_does_not_move_to_another_url(config: NodeConfig, change: dict[str, str]) -> None:
    data = masked(config)
    data["upstreams"][0] |= change
    with pytest.raises(ConfigError, match=r"upstreams\[0\]\.api_key"):
        restore(NodeConfig.model_validate(data), config)


def test_an_upstreams_masked_key_does_not_become_another_upstreams(config: NodeConfig) -> None:
    data = masked(config)
    data["upstreams"][1]["api_key"] = data["upstreams"][0]["api_key"]
    with pytest.raises(ConfigError, match=r"upstreams\[1\]\.api_key"):
        restore(NodeConfig.model_validate(data), config)


@given(st.lists(st.text("abc-", min_size=1, max_size=12), unique=True, max_size=6))
def test_masking_is_undone_for_any_keys(keys: list[str]) -> None:
    config = NodeConfig.model_validate({"server": {"api_keys": keys}})
    assert restore(NodeConfig.model_validate(masked(config)), config) == config


def test_check_warns_of_keys_in_plain_text(config: NodeConfig) -> None:
    found = [w for w in warnings(config, None) if "plain text" in w]
    assert [w.partition(":")[0] for w in found] == ["server.api_keys[0]", "server.admin_key", "upstreams[0].api_key"]
    assert not [w for w in found if SECRET in w]


@pytest.mark.parametrize(
    "origin", ["*", "null", "https://a/", "https://*.a", "a.example", "https://a.example/x", "https://u@a"]
)
def test_only_exact_origins(origin: str) -> None:
    with pytest.raises(ConfigError, match="exactly as a browser sends it"):
        load_text(f'server:\n  cors_origins: ["{origin}"]')
