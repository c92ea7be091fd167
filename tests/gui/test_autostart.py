"""Start with the session, on a fake home or a registry in memory."""

from __future__ import annotations

import plistlib
import shlex
from contextlib import contextmanager

import pytest

from laya_desktop.gui import autostart
from laya_desktop.gui.autostart.linux import DesktopEntry
from laya_desktop.gui.autostart.macos import LaunchAgent
from laya_desktop.gui.autostart.windows import KEY, RunKey

COMMAND = ("/opt/La ya/python", "-m", "laya_desktop", "--hidden")


class Registry:
    """``winreg`` as far as it is used, in memory."""

    HKEY_CURRENT_USER, REG_SZ, KEY_SET_VALUE = "HKCU", 1, 2

    def __init__(self):
        self.keys = {}

    @contextmanager
    def OpenKey(self, root, path, _reserved=0, _access=0):  # noqa: N802
        if (root, path) not in self.keys:
            raise FileNotFoundError(path)
        yield self.keys[root, path]

    @contextmanager
    def CreateKey(self, root, path):  # noqa: N802
        yield self.keys.setdefault((root, path), {})

    def QueryValueEx(self, key, name):  # noqa: N802
        if name not in key:
            raise FileNotFoundError(name)
        return key[name], self.REG_SZ

    def SetValueEx(self, key, name, _reserved, kind, value):  # noqa: N802
        assert kind == self.REG_SZ
        key[name] = value

    def DeleteValue(self, key, name):  # noqa: N802
        if name not in key:
            raise FileNotFoundError(name)
        del key[name]


@pytest.fixture(params=["linux", "macos", "windows"])
def place(request, tmp_path):
    makers = {
        "linux": lambda: DesktopEntry(tmp_path / "autostart"),
        "macos": lambda: LaunchAgent(tmp_path / "LaunchAgents"),
        "windows": lambda: RunKey(Registry()),
    }
    return makers[request.param]()


def test_on_and_off_and_both_twice(place):
    assert not place.is_on()
    place.turn_off()
    place.turn_on(COMMAND)
    place.turn_on(COMMAND)
    assert place.is_on()
    place.turn_off()
    place.turn_off()
    assert not place.is_on()


def test_the_desktop_entry_starts_what_was_given(tmp_path):
    entry = DesktopEntry(tmp_path)
    entry.turn_on(("/opt/La ya/100%/$x", "--hidden"))
    lines = dict(line.split("=", 1) for line in entry.path.read_text().splitlines() if "=" in line)
    assert lines["Type"] == "Application"
    value = lines["Exec"].replace("\\\\", "\\").replace("%%", "%").replace("\\$", "$")  # as a desktop reads it
    assert shlex.split(value) == ["/opt/La ya/100%/$x", "--hidden"]


@pytest.mark.parametrize("line", ["Hidden=true", "X-GNOME-Autostart-enabled=false"])
def test_an_entry_that_a_session_tool_switched_off_is_off(tmp_path, line):
    entry = DesktopEntry(tmp_path)
    entry.turn_on(COMMAND)
    text = entry.path.read_text().replace("X-GNOME-Autostart-enabled=true\n", "")
    entry.path.write_text(f"{text}{line}\n")
    assert not entry.is_on()


def test_the_desktop_entry_is_in_the_users_configuration(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "c"))
    assert DesktopEntry().path == tmp_path / "c" / "autostart" / "laya-desktop.desktop"
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert DesktopEntry().path == tmp_path / ".config" / "autostart" / "laya-desktop.desktop"
    assert LaunchAgent().path.parent == tmp_path / "Library" / "LaunchAgents"


def test_the_agent_runs_at_login(tmp_path):
    agent = LaunchAgent(tmp_path)
    agent.turn_on(COMMAND)
    content = plistlib.loads(agent.path.read_bytes())
    assert content["ProgramArguments"] == list(COMMAND)
    assert content["RunAtLoad"] is True
    agent.path.write_bytes(b"<plist>broken")
    assert not agent.is_on()


def test_the_run_key_is_quoted():
    registry = Registry()
    RunKey(registry).turn_on(COMMAND)
    assert registry.keys["HKCU", KEY]["Laya Desktop"] == '"/opt/La ya/python" -m laya_desktop --hidden'


def test_the_command_is_this_program(monkeypatch):
    assert autostart.command()[1:] == ("-m", "laya_desktop", "--hidden")
    monkeypatch.setattr("sys.frozen", True, raising=False)
    assert autostart.command()[1:] == ("--hidden",)
