"""Folders of the product, and how shipped files are found in each kind of installation."""

from pathlib import Path

import pytest

from laya_desktop import paths
from laya_desktop.errors import LayaError

ALL = (paths.config_dir, paths.state_dir, paths.log_dir, paths.cache_dir, paths.data_dir)


def test_laya_home_moves_every_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("LAYA_HOME", str(tmp_path))
    found = [f() for f in ALL]
    assert {p.parent for p in found} == {tmp_path}
    assert len(set(found)) == len(ALL)
    assert not any(p.exists() for p in found), "a look-up creates nothing"


def test_laya_home_may_be_relative_or_start_with_a_tilde(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LAYA_HOME", "here")
    assert paths.log_dir() == tmp_path / "here" / "logs"
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("LAYA_HOME", "~/there")
    assert paths.data_dir() == tmp_path / "there" / "data"


@pytest.mark.parametrize("value", [None, "", "  "])
def test_without_laya_home_the_platform_decides(value, monkeypatch):
    if value is None:
        monkeypatch.delenv("LAYA_HOME", raising=False)
    else:
        monkeypatch.setenv("LAYA_HOME", value)
    for folder in (f() for f in ALL):
        assert folder.is_absolute()
        assert "laya-desktop" in folder.parts


def test_this_checkout_has_its_shipped_folders():
    assert paths.resources_dir().is_dir()
    assert paths.configs_dir().is_dir()


def _package(root: Path) -> Path:
    package = root / "laya_desktop"
    package.mkdir(parents=True)
    return package


def test_a_checkout_uses_the_folder_beside_the_package(tmp_path):
    package = _package(tmp_path)
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "configs").mkdir()
    assert paths.find_shipped("configs", package=package) == tmp_path / "configs"


def test_a_wheel_uses_its_own_copy_and_no_strangers_folder(tmp_path):
    package = _package(tmp_path)
    (tmp_path / "resources").mkdir()  # some other package's, in site-packages
    with pytest.raises(LayaError, match="resources"):
        paths.find_shipped("resources", package=package)
    (package / "_resources").mkdir()
    assert paths.find_shipped("resources", package=package) == package / "_resources"


@pytest.mark.parametrize("inside", ["laya_desktop/_configs", "configs"])
def test_a_frozen_build_uses_its_bundle(tmp_path, inside):
    bundle = tmp_path / "bundle"
    (bundle / inside).mkdir(parents=True)
    package = _package(tmp_path / "elsewhere")
    (package / "_configs").mkdir()
    assert paths.find_shipped("configs", package=package, frozen=str(bundle)) == bundle / inside


def test_a_missing_folder_is_said_with_the_places_looked_in(tmp_path):
    with pytest.raises(LayaError) as caught:
        paths.find_shipped("configs", package=_package(tmp_path), frozen=str(tmp_path / "b"))
    assert str(tmp_path / "b" / "configs") in caught.value.message
    assert caught.value.hint
