"""The fake's settings; what it does is in the contract suite."""

from __future__ import annotations

import pytest

from laya_desktop.node.engines.base import Delta, EngineLoadError, EngineParams, Finished, Generate
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


def test_it_thinks_when_told_to() -> None:
    engine = FakeEngine()
    engine.load(EngineParams("m", "fake:tokens=3,think=2", engine="fake"), lambda _progress: None)
    engine.submit(Generate("r", messages=[{"role": "user", "content": "hi"}]))
    events = []
    while engine.busy:
        events += engine.step()
    deltas = [e for e in events if isinstance(e, Delta)]
    assert "".join(d.reasoning for d in deltas) == "A fake"
    assert "".join(d.text for d in deltas) == "A fake engine"
    assert isinstance(events[-1], Finished)
    assert (events[-1].completion_tokens, events[-1].reasoning_tokens) == (7, 3)
