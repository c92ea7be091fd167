"""The flags that stand in for settings of the file."""

from __future__ import annotations

import argparse

import pytest

from laya_desktop import cli


def overrides(*flags: str) -> object:
    parser = argparse.ArgumentParser()
    cli._add_overrides(parser)
    return cli._overrides(parser.parse_args(flags))


def test_flags_become_overrides() -> None:
    found = overrides("--log-level", "warn", "--mem-fraction", "0.7")
    assert (found.log_level, found.mem_fraction) == ("warn", 0.7)  # type: ignore[attr-defined]
    none = overrides()
    assert (none.log_level, none.mem_fraction) == (None, None)  # type: ignore[attr-defined]


@pytest.mark.parametrize("flags", [("--log-level", "loud"), ("--mem-fraction", "1.5"), ("--mem-fraction", "much")])
def test_a_bad_flag_is_refused_by_name(flags: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        overrides(*flags)
    assert flags[0] in capsys.readouterr().err
