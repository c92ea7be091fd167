"""The recipes under packaging/ are whole and agree with the product; ``make package-test`` tries that they work."""

from __future__ import annotations

import configparser
import importlib
import plistlib
import re
import shutil
import struct
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

import laya_desktop

ROOT = Path(__file__).resolve().parents[2]
PACKAGING = ROOT / "packaging"


@pytest.fixture
def recipe(monkeypatch):
    """A script of packaging/ as a module."""
    monkeypatch.syspath_prepend(str(PACKAGING))
    monkeypatch.syspath_prepend(str(PACKAGING / "linux"))
    return importlib.import_module


def ini(path: Path) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str
    parser.read_string(path.read_text(encoding="utf-8"))
    return parser


def test_the_version_is_the_products(recipe):
    assert recipe("package").version() == laya_desktop.__version__


def test_the_headless_node_needs_everything_but_the_window(recipe):
    needs = recipe("headless").needs()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    left_out = set(project["dependencies"]) - set(needs)
    assert {re.match(r"[A-Za-z0-9-]+", need).group().lower() for need in left_out} == {
        "pyside6-essentials",
        "pyqtgraph",
    }


def test_the_desktop_entry_starts_the_program_with_a_file():
    entry = ini(PACKAGING / "linux" / "laya-desktop.desktop")["Desktop Entry"]
    assert (entry["Type"], entry["Exec"], entry["Icon"]) == ("Application", "laya-desktop %f", "laya-desktop")
    if (tool := shutil.which("desktop-file-validate")) is not None:
        subprocess.run([tool, PACKAGING / "linux" / "laya-desktop.desktop"], check=True)


def test_the_metainfo_names_what_the_package_installs():
    root = ET.parse(PACKAGING / "linux" / "io.github.laya.desktop.metainfo.xml").getroot()
    assert root.findtext("launchable") == "laya-desktop.desktop"
    assert root.findtext("project_license") == "Apache-2.0"
    assert root.find("releases/release").get("version") == "@VERSION@"


def test_the_service_delegates_its_group_and_ends_in_time():
    service = ini(PACKAGING / "systemd" / "laya-desktop.service")["Service"]
    assert service["ExecStart"].startswith("/usr/bin/laya-desktop serve ")
    assert "memory" in service["Delegate"].split()
    assert service["NoNewPrivileges"] == "yes"


def test_the_container_runs_as_nobody_special_and_is_watched():
    text = (PACKAGING / "container" / "Containerfile").read_text(encoding="utf-8")
    assert re.search(r"^USER laya$", text, re.MULTILINE)
    assert "HEALTHCHECK" in text
    assert "packaging/headless.py" in text


def test_the_mac_entitlements_are_a_property_list():
    values = plistlib.loads((PACKAGING / "macos" / "entitlements.plist").read_bytes())
    assert values["com.apple.security.cs.disable-library-validation"] is True


def test_the_package_depends_on_the_libraries_that_set_up_installs(recipe):
    depends = recipe("deb").DEPENDS
    assert set(recipe("bootstrap").QT_LIBRARIES.values()) <= set(depends)


def test_icons_in_every_size_and_both_containers(recipe, qapp):
    icons = recipe("icons")
    pictures = {size: icons.render(size) for size in icons.SIZES}
    for size, png in pictures.items():
        assert png.startswith(b"\x89PNG")
        assert struct.unpack(">II", png[16:24]) == (size, size)
    ico = icons.ico(pictures)
    count = struct.unpack("<HHH", ico[:6])[2]
    length, offset = struct.unpack("<II", ico[6 + 16 * (count - 1) + 8 : 6 + 16 * count])
    assert ico[offset : offset + length] == pictures[256]
    icns = icons.icns(pictures)
    assert struct.unpack(">I", icns[4:8])[0] == len(icns)


def test_a_script_without_its_application_says_what_to_do(recipe, tmp_path, monkeypatch):
    package, deb = recipe("package"), recipe("deb")
    monkeypatch.setattr(package, "APP", tmp_path / "nothing")
    with pytest.raises(SystemExit, match="make package"):
        deb.main()
    assert sys.modules["package"] is package
