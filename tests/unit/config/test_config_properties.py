"""Whatever the configuration: what is written reads back equal, and what was not touched stays."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from laya_desktop.config import units
from laya_desktop.config.loader import load_text
from laya_desktop.config.render import check_both_readers, fresh, render
from laya_desktop.config.schema import ModelConfig, NodeConfig, ServerConfig
from laya_desktop.errors import ConfigError, LayaError
from laya_desktop.paths import configs_dir
from tests.helpers.config_strategies import configs, seconds, sizes

FAST = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@FAST
@given(config=configs())
def test_a_new_text_reads_back_equal_with_both_libraries(config: NodeConfig) -> None:
    text = fresh(config)

    assert load_text(text) == config
    check_both_readers(text, config)


def annotate(text: str) -> tuple[str, list[str]]:
    """A comment above every line and one behind it; returns the comments."""
    comments: list[str] = []
    lines: list[str] = []
    for n, line in enumerate(text.splitlines()):
        indent = len(line) - len(line.lstrip(" "))
        above, behind = f"# above {n}.", f"# behind {n}."
        lines += [f"{' ' * indent}{above}", f"{line}  {behind}" if line.strip() else line]
        comments += [above, behind] if line.strip() else [above]
    return "".join(f"{line}\n" for line in lines), comments


@FAST
@given(old=configs(), new=configs())
def test_any_file_can_be_brought_to_any_configuration(old: NodeConfig, new: NodeConfig) -> None:
    text, _ = annotate(fresh(old))
    assert load_text(text) == old

    changed = render(text, old, new)

    assert load_text(changed) == new
    check_both_readers(changed, new)


@FAST
@given(old=configs(), data=st.data())
def test_an_edit_keeps_every_other_line(old: NodeConfig, data: st.DataObject) -> None:
    if not old.models:
        return
    model = data.draw(st.sampled_from(old.models))
    text, comments = annotate(fresh(old))
    edited = model.model_copy(update={"batch_size": model.batch_size % 256 + 1, "warmup": not model.warmup})

    changed = render(text, old, old.with_model(edited, model.name))

    assert [c for c in comments if c not in changed] == []
    kept = [line for line in text.splitlines() if line not in changed.splitlines()]
    assert len(kept) <= 1  # the line of batch_size, where there was one


@FAST
@given(old=configs(), data=st.data())
def test_moving_a_route_moves_its_lines_and_changes_none(old: NodeConfig, data: st.DataObject) -> None:
    if not old.routes:
        return
    route = data.draw(st.sampled_from(old.routes))
    text, _ = annotate(fresh(old))

    changed = render(text, old, old.move_route(route.name, data.draw(st.integers(0, 5))))

    assert sorted(changed.splitlines()) == sorted(text.splitlines())


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """A real file with pieces cut out, doubled or put in."""
    text = (configs_dir() / draw(st.sampled_from(["edge-router.yaml", "legacy-short-form.yaml"]))).read_text()
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(text)))
        end = min(len(text), at + draw(st.integers(0, 12)))
        piece = draw(
            st.sampled_from(
                ["", text[at:end] * 2, "\t", ": ", "- ", "{", "]", "#", "'", "\n", "null", "\x85", "é", "? "]
            )
        )
        text = text[:at] + piece + text[end:]
    return text


@settings(FAST, max_examples=150)
@given(text=damaged())
def test_a_damaged_file_is_refused_or_edited_but_never_crashes(text: str) -> None:
    try:
        old = load_text(text)
    except ConfigError:
        return
    model = ModelConfig.model_validate({"name": "brand-new", "path": "x"})
    new = old.with_model(model).model_copy(update={"server": ServerConfig(port=1)})
    try:
        changed = render(text, old, new)
    except LayaError:
        return
    assert load_text(changed) == new


@FAST
@given(value=seconds)
def test_a_duration_reads_back_equal(value: float) -> None:
    assert units.parse_duration(units.format_duration(value)) == value


@FAST
@given(value=sizes)
def test_a_size_reads_back_equal(value: int) -> None:
    assert units.parse_size(units.format_size(value)) == value


@pytest.mark.parametrize(("text", "seconds_"), [("300s", 300.0), ("5m", 300.0), ("1.5h", 5400.0), ("9ms", 0.009)])
def test_durations_are_read_as_people_write_them(text: str, seconds_: float) -> None:
    assert units.parse_duration(text) == seconds_


@pytest.mark.parametrize("value", [True, -1, "5 parsecs", "", None, float("inf"), float("nan"), 1e10, 1e-9, "9" * 70])
def test_what_is_no_duration_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="duration"):
        units.parse_duration(value)


@pytest.mark.parametrize("value", [True, -1, "many", "", None, 2**60, 1.5])
def test_what_is_no_size_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="size"):
        units.parse_size(value)


@pytest.mark.parametrize("name", ["0o10", "1e3", "on", "12:30:00"])
def test_text_that_one_library_reads_otherwise_is_found_out(name: str) -> None:
    config = NodeConfig(models=(ModelConfig.model_validate({"name": name, "path": "x"}),))

    check_both_readers(f'models: [{{name: "{name}", path: x}}]', config)
    with pytest.raises(LayaError, match="does not read back equal"):
        check_both_readers(f"models: [{{name: {name}, path: x}}]", config)
