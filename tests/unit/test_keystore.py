"""Keys of upstreams: in a keyring where there is one, else in a private file; never in a message."""

from __future__ import annotations

import io
import json
import logging
import os
import stat
import threading
from pathlib import Path

import pytest
from keyring.backends import fail, null

from laya_desktop import cli
from laya_desktop.errors import LayaError
from laya_desktop.keystore import FILE, KeyStore, find_keyring

SECRET = "up-0123456789abcdef"


class MemoryKeyring:
    """A keyring that works."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.kept[service, username]


class BrokenKeyring(MemoryKeyring):
    """One that quotes what it was given when it fails."""

    def get_password(self, service: str, username: str) -> str | None:
        raise RuntimeError(f"locked: {service} {username} {SECRET}")

    def set_password(self, service: str, username: str, password: str) -> None:
        raise RuntimeError(f"locked: {password}")


def file_store(folder: Path, warnings: list[str] | None = None) -> KeyStore:
    return KeyStore(folder, find=lambda: None, warn=None if warnings is None else warnings.append)


def test_without_a_keyring_a_private_file_keeps_keys_and_says_so_once(tmp_path: Path) -> None:
    said: list[str] = []
    store = file_store(tmp_path / "config", said)
    place = store.set("box", f"{SECRET}\n")
    store.set("other", "x" * 8)
    path = tmp_path / "config" / FILE
    assert str(path) in place
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(said) == 1
    assert "not encrypted" in said[0]
    again = file_store(tmp_path / "config")
    assert again.get("box") == SECRET
    assert again.names() == ["box", "other"]
    assert again.delete("box")
    assert not again.delete("box")
    assert again.get("box") is None
    assert [p.name for p in path.parent.iterdir()] == [FILE]


def test_a_keyring_keeps_the_key_and_the_file_only_its_name(tmp_path: Path) -> None:
    ring, said = MemoryKeyring(), list[str]()
    store = KeyStore(tmp_path, find=lambda: ring, warn=said.append)
    assert "keyring" in store.set("box", SECRET)
    assert ring.kept == {("laya-desktop", "box"): SECRET}
    assert SECRET not in (tmp_path / FILE).read_text()
    assert (store.get("box"), store.names(), said) == (SECRET, ["box"], [])
    assert store.delete("box")
    assert (ring.kept, store.names()) == ({}, [])


def test_a_key_stored_in_the_file_is_found_once_there_is_a_keyring(tmp_path: Path) -> None:
    file_store(tmp_path).set("box", SECRET)
    assert KeyStore(tmp_path, find=MemoryKeyring).get("box") == SECRET


def test_a_failing_keyring_is_an_error_that_quotes_nothing(tmp_path: Path) -> None:
    store = KeyStore(tmp_path, find=BrokenKeyring)
    for call in (lambda: store.get("box"), lambda: store.set("box", SECRET), lambda: store.delete("box")):
        with pytest.raises(LayaError, match=r"keyring failed \(RuntimeError\)") as caught:
            call()
        assert SECRET not in repr(caught.value) + str(caught.value)
        assert caught.value.__suppress_context__ or caught.value.__context__ is None
    assert not (tmp_path / FILE).exists()


def test_a_keyring_that_never_answers_is_given_up(tmp_path: Path) -> None:
    release = threading.Event()

    class Waiting(MemoryKeyring):
        def get_password(self, service: str, username: str) -> str | None:
            release.wait(10)
            return None

    try:
        with pytest.raises(LayaError, match="did not answer within"):
            KeyStore(tmp_path, find=Waiting, timeout_s=0.05).get("box")
    finally:
        release.set()


@pytest.mark.parametrize("key", ["", " \n", "a b", "a\r\nX-Evil: 1", "schlüssel", "x" * 5000])
def test_what_is_not_a_key_is_refused(tmp_path: Path, key: str) -> None:
    with pytest.raises(LayaError, match="not a key") as caught:
        file_store(tmp_path).set("box", key)
    assert not key.strip() or key not in str(caught.value)


@pytest.mark.parametrize("content", ["", "[]", "{", '{"keys": []}', '{"keys": {"a": 1}}'])
def test_a_damaged_file_is_said_and_left_alone(tmp_path: Path, content: str) -> None:
    (tmp_path / FILE).write_text(content)
    (tmp_path / FILE).chmod(0o600)
    for call in (lambda s: s.get("box"), lambda s: s.set("box", SECRET), lambda s: s.names()):
        with pytest.raises(LayaError, match="cannot be read"):
            call(file_store(tmp_path))
    assert (tmp_path / FILE).read_text() == content


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
def test_a_file_that_others_can_read_is_made_private(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / FILE).write_text(json.dumps({"version": 1, "keys": {"box": SECRET}}))
    (tmp_path / FILE).chmod(0o644)
    with caplog.at_level(logging.WARNING):
        assert file_store(tmp_path).get("box") == SECRET
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600
    assert "private again" in caplog.text
    assert SECRET not in caplog.text


def test_the_fail_backend_is_no_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    for backend in (fail.Keyring, null.Keyring):
        monkeypatch.setattr("keyring.get_keyring", backend)
        assert find_keyring() is None


def run(monkeypatch: pytest.MonkeyPatch, *argv: str, stdin: str = "") -> int:
    monkeypatch.setattr("sys.stdin", io.StringIO(stdin))
    return cli.main(["key", *argv])


def test_the_command_reads_the_key_from_standard_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LAYA_HOME", str(tmp_path))
    monkeypatch.setattr("keyring.get_keyring", fail.Keyring)
    assert run(monkeypatch, "set", "box", stdin=f"{SECRET}\n") == 0
    assert file_store(tmp_path / "config").get("box") == SECRET
    said = capsys.readouterr()
    assert "keyring:box" in said.err
    assert "no keyring" in said.err
    assert SECRET not in said.out + said.err
    assert run(monkeypatch, "list") == 0
    assert capsys.readouterr().out == "box\n"
    assert run(monkeypatch, "delete", "box") == 0
    assert run(monkeypatch, "delete", "box") == 1
    capsys.readouterr()
    assert run(monkeypatch, "list") == 0
    assert capsys.readouterr().out == ""
    assert run(monkeypatch, "set", "box", stdin="") == 1
    assert "not a key" in capsys.readouterr().err
