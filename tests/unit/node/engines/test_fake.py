"""The fake's settings; what it does is in the contract suite."""

from __future__ import annotations

import pytest

from laya_desktop.node.engines.base import EngineLoadError, EngineParams
from laya_desktop.node.engines.fake import FakeEngine, FakeSettings, parse_path


def test_settings_are_read_from_the_path() -> None:
    assert parse_path("fake") == parse_path("fake:") == FakeSettings()
    assert parse_path("fake:tokens=5,itl_ms=2.5") == FakeSettings(tokens=5, itl_ms=2.5)


@pytest.mark.parametrize(("path", "says"), [("fake:token=5", "tokens"), ("fake:tokens=many", "tokens='many'")])
def test_a_wrong_setting_is_named(path: str, says: str) -> None:
    with pytest.raises(EngineLoadError, match=says):
        parse_path(path)


def test_it_fails_when_told_to() -> None:
    with pytest.raises(EngineLoadError, match="told to fail"):
        FakeEngine().load(EngineParams("m", "fake:fail_load=1"), lambda _progress: None)
