"""The guard as scripts on a simulated clock: what it says and does, when it takes it back, what it never does."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laya_desktop.config.schema import GuardConfig
from laya_desktop.errors import LayaError
from laya_desktop.node.forecast import Forecaster
from laya_desktop.node.guard import IDLE_S, RELIEF_S, UNLOAD_EVERY_S, Guard, Mode, ModelView
from laya_desktop.node.guard_signs import HEAT, MEMORY, OTHER, Sign, Signs
from laya_desktop.node.levels import LOWER_S, ORDER, RAISE_S, RANK, Gate
from laya_desktop.state.enums import Level
from laya_desktop.state.events import AlertCleared, AlertRaised, Event, GuardActed
from laya_desktop.state.snapshot import Forecast, GpuSnapshot, MachineSnapshot

GIB = 2**30
TEXT = {level: f"RAM is {level}" for level in Level}


@dataclass
class Scene:
    """A guard whose effects are recorded and whose clock the test moves."""

    mode: Mode = "shed"
    models: list[ModelView] = field(default_factory=list)
    now_s: float = 1000.0
    standing: dict[str, bool] = field(default_factory=dict)
    unloaded: list[str] = field(default_factory=list)
    reloaded: list[str] = field(default_factory=list)
    said: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.guard = Guard(self)

    def set_standing(self, kind: str, *, on: bool) -> None:
        assert self.standing.get(kind, False) is not on, "told twice"
        self.standing[kind] = on

    def unload(self, model: str, reason: str) -> None:
        assert reason.startswith("the guard frees memory")
        self.unloaded.append(model)
        self.models = [m for m in self.models if m.name != model]

    def reload(self, model: str) -> None:
        self.reloaded.append(model)

    def say(self, event: Event) -> None:
        self.said.append(event)

    def at(self, level: Level, after_s: float = 0.25, *, kind: str = MEMORY, resource: str = "ram") -> Scene:
        self.now_s += after_s
        sign = Sign(resource, level, TEXT[level], kind)
        self.guard.update(self.now_s, 1e9 + self.now_s, [sign], self.models, self.mode)
        return self

    @property
    def in_force(self) -> set[str]:
        return {kind for kind, on in self.standing.items() if on}

    def idle(self, name: str, since_s: float = 60.0, **facts: bool) -> Scene:
        self.models.append(ModelView(name, self.now_s - since_s, **facts))
        return self


def test_watch_is_said_and_nothing_is_done() -> None:
    scene = Scene().idle("a").at(Level.WATCH).at(Level.WATCH)
    assert [type(e) for e in scene.said] == [AlertRaised]
    assert (scene.in_force, scene.unloaded) == (set(), [])
    shown = scene.guard.snapshot()
    assert (shown.level, shown.text) == (Level.WATCH, "RAM is watch")
    assert [(a.resource, a.level, a.cleared_unix_s, a.actions) for a in shown.alerts] == [
        ("ram", Level.WATCH, None, ())
    ]


def test_warn_holds_batch_requests_and_unloads_the_least_recently_used_idle_model_one_at_a_time() -> None:
    scene = Scene().idle("recent", 20).idle("oldest", 90, busy=True).idle("kept", 80, pinned=True).idle("old", 60)
    scene.idle("just used", IDLE_S - 1)
    scene.at(Level.WARN)
    assert scene.in_force == {"hold_batch"}
    assert scene.unloaded == ["old"]
    scene.at(Level.WARN, 0.25)
    assert scene.unloaded == ["old"]
    scene.at(Level.WARN, UNLOAD_EVERY_S)
    assert scene.unloaded == ["old", "recent"]
    acted = [e for e in scene.said if isinstance(e, GuardActed)]
    assert [(e.kind, e.reason) for e in acted] == [
        ("hold_batch", "RAM is warn"), ("unload_idle", "RAM is warn"), ("unload_idle", "RAM is warn"),
    ]  # fmt: skip
    assert scene.guard.snapshot().alerts[0].actions == (
        "Batch requests wait", "Idle model 'old' is unloaded", "Idle model 'recent' is unloaded",
    )  # fmt: skip
    assert scene.guard.refusal("refuse_loads") is None


def test_a_busy_or_pinned_model_is_never_unloaded_even_at_critical() -> None:
    scene = Scene().idle("busy", 900, busy=True).idle("pinned", 900, pinned=True)
    for _ in range(40):
        scene.at(Level.CRITICAL, 1.0)
    assert scene.unloaded == []


def test_a_full_gpu_takes_models_off_the_gpu_only_and_full_ram_those_in_ram() -> None:
    scene = Scene().idle("cpu", 90).idle("gpu", 60, in_vram=True, in_ram=False)
    scene.at(Level.WARN, resource="vram:0")
    assert scene.unloaded == ["gpu"]
    scene.at(Level.WARN, UNLOAD_EVERY_S + 1, resource="vram:0")
    assert scene.unloaded == ["gpu"]
    scene.at(Level.WARN, UNLOAD_EVERY_S + 1, resource="ram")
    assert scene.unloaded == ["gpu", "cpu"]


def test_critical_refuses_loads_and_batch_requests_with_numbers_and_a_time_and_calm_undoes_it() -> None:
    scene = Scene().at(Level.CRITICAL)
    assert scene.in_force == {"hold_batch", "refuse_batch", "refuse_loads"}
    for kind in ("refuse_batch", "refuse_loads"):
        refused = scene.guard.refusal(kind)
        assert refused is not None
        assert (refused.status, refused.code) == (503, "overloaded")
        assert refused.retry_after_s
        assert "RAM is critical" in refused.message
    scene.at(Level.CALM)
    assert scene.in_force == set()
    assert scene.guard.refusal("refuse_loads") is None
    assert scene.guard.snapshot().actions == ()
    assert isinstance(scene.said[-1], GuardActed | AlertCleared)
    past = scene.guard.snapshot().alerts[0]
    assert (past.peak, past.cleared_unix_s) == (Level.CRITICAL, 1e9 + scene.now_s)
    assert past.actions == ("Batch requests wait", "Batch requests are refused", "New models are not loaded")


def test_steady_watch_gives_what_was_held_free_after_a_while() -> None:
    scene = Scene().at(Level.WARN)
    scene.at(Level.WATCH, RELIEF_S - 1)
    assert scene.in_force == {"hold_batch"}
    scene.at(Level.WATCH, 2.0)
    assert scene.in_force == set()


@pytest.mark.parametrize(("mode", "alerts"), [("warn", 1), ("off", 0)])
def test_warn_mode_only_says_and_off_does_nothing(mode: Mode, alerts: int) -> None:
    scene = Scene(mode).idle("a", 900)
    for _ in range(5):
        scene.at(Level.CRITICAL, 5.0)
    assert (scene.standing, scene.unloaded) == ({}, [])
    assert len(scene.said) == alerts
    assert len(scene.guard.snapshot().alerts) == alerts
    assert scene.guard.level is (Level.CRITICAL if alerts else Level.CALM)


def test_leaving_shed_takes_everything_back() -> None:
    scene = Scene().at(Level.CRITICAL)
    scene.mode = "warn"
    assert scene.at(Level.CRITICAL).in_force == set()
    scene.mode = "shed"
    assert scene.at(Level.CRITICAL).in_force == {"hold_batch", "refuse_batch", "refuse_loads"}


def test_what_shedding_cannot_cure_is_only_said_and_heat_sheds_batch_but_no_model() -> None:
    scene = Scene().idle("a").at(Level.WARN, kind=OTHER, resource="disk")
    assert (scene.in_force, scene.unloaded) == (set(), [])
    scene.at(Level.WARN, kind=HEAT, resource="temperature")
    assert (scene.in_force, scene.unloaded) == ({"hold_batch"}, [])


def test_an_undone_action_stays_undone_until_all_is_calm() -> None:
    scene = Scene().at(Level.WARN)
    action = scene.guard.snapshot().actions[0]
    assert scene.guard.undo(action.action_id).undone
    assert scene.in_force == set()
    for _ in range(10):
        scene.at(Level.WARN, 5.0)
    assert scene.in_force == set()
    assert scene.at(Level.CALM).at(Level.WARN).in_force == {"hold_batch"}
    with pytest.raises(LayaError, match="no action"):
        scene.guard.undo(action.action_id)


def test_undoing_an_unload_loads_the_model_again_and_spares_it_and_the_next_one_goes_instead() -> None:
    scene = Scene().idle("a", 90).at(Level.WARN)
    action = next(a for a in scene.guard.snapshot().actions if a.model == "a")
    scene.guard.undo(action.action_id)
    assert scene.reloaded == ["a"]
    scene.idle("a", 80).idle("b", 50)
    scene.at(Level.WARN, UNLOAD_EVERY_S)
    assert scene.unloaded == ["a", "b"]
    with pytest.raises(LayaError):
        scene.guard.undo(action.action_id)


def test_alerts_rise_once_each_and_the_history_is_bounded() -> None:
    scene = Scene("warn")
    scene.at(Level.WATCH).at(Level.CRITICAL).at(Level.WARN).at(Level.CRITICAL).at(Level.CALM)
    assert [e.level for e in scene.said if isinstance(e, AlertRaised)] == ["watch", "critical", "critical"]
    assert len({e.alert_id for e in scene.said}) == 1
    for _ in range(300):
        scene.at(Level.WATCH).at(Level.CALM)
    alerts = scene.guard.snapshot().alerts
    assert len(alerts) == 100
    assert alerts[0].raised_unix_s > alerts[-1].raised_unix_s


STEPS = st.lists(st.tuples(st.sampled_from(ORDER), st.floats(0.01, 40.0)), max_size=60)


@given(STEPS)
def test_in_whatever_order_levels_come_actions_fit_the_level_and_none_outlives_calm(steps: list) -> None:
    scene = Scene()
    for level, after_s in steps:
        scene.at(level, after_s)
        if level is Level.CALM:
            assert scene.in_force == set()
        if RANK[level] >= RANK[Level.WARN]:
            assert "hold_batch" in scene.in_force
        if level is Level.CRITICAL:
            assert scene.in_force == {"hold_batch", "refuse_batch", "refuse_loads"}
    assert scene.in_force == {a.kind for a in scene.guard.snapshot().actions}
    begun = [e.kind for e in scene.said if isinstance(e, GuardActed) and not e.undone]
    lifted = [e.kind for e in scene.said if isinstance(e, GuardActed) and e.undone]
    for kind in scene.standing:
        assert begun.count(kind) - lifted.count(kind) == (kind in scene.in_force)


@given(STEPS)
def test_a_level_never_rises_before_its_condition_held_nor_falls_before_it_failed_long_enough(steps: list) -> None:
    gate, now_s, before = Gate(), 0.0, Level.CALM
    seen: list[tuple[float, Level]] = []
    for wanted, after_s in steps:
        now_s += after_s
        seen.append((now_s, wanted))
        level = gate.update(now_s, wanted, wanted)
        if RANK[level] > RANK[before]:
            assert all(RANK[w] > RANK[before] for t, w in seen if t > now_s - RAISE_S)
        elif level is not before:
            assert all(RANK[w] < RANK[before] for t, w in seen if t > now_s - LOWER_S)
            assert RANK[level] >= max(RANK[w] for t, w in seen if t > now_s - LOWER_S)
        before = level


def settle(signs: Signs, machine: MachineSnapshot, forecasts: tuple[Forecast, ...] = ()) -> dict[str, Sign]:
    found: tuple[Sign, ...] = ()
    for step in range(4):
        found = signs.read(100.0 + step, forecasts, machine)
    return {s.resource: s for s in found}


@pytest.mark.parametrize(
    ("facts", "resource", "level", "words"),
    [
        ({"memory_some_avg10_percent": 15.0, "memory_full_avg10_percent": 1.0}, "pressure", Level.WATCH, "15 %"),
        ({"memory_some_avg10_percent": 30.0, "memory_full_avg10_percent": 12.0}, "pressure", Level.WARN, "30 %"),
        ({"memory_some_avg10_percent": 70.0, "memory_full_avg10_percent": 50.0}, "pressure", Level.CRITICAL, "70 %"),
        ({"swap_in_bytes_per_s": 5e6}, "swap", Level.WATCH, "5.0 MB a second"),
        ({"swap_in_bytes_per_s": 50e6}, "swap", Level.WARN, "50.0 MB"),
        ({"disk_free_bytes": 10**9}, "disk", Level.WATCH, "1.0 GB left"),
        ({"disk_free_bytes": 10**8}, "disk", Level.WARN, "0.1 GB left"),
        ({"disk_free_bytes": 10**12}, "disk", Level.CALM, "GB left"),
        ({"cpu_temperature_c": 98.0}, "temperature", Level.WARN, "CPU at 98 °C"),
        ({"gpus": (GpuSnapshot(1, "x", temperature_c=94.0),)}, "temperature", Level.WARN, "GPU 1 at 94 °C"),
    ],
)
def test_signs_of_the_machine(facts: dict, resource: str, level: Level, words: str) -> None:
    signs = settle(Signs(), MachineSnapshot(**facts))
    assert set(signs) == {resource}
    assert signs[resource].level is level
    assert words in signs[resource].text


def test_a_missing_sensor_gives_no_sign_and_a_full_queue_counts_as_warn_at_most() -> None:
    assert settle(Signs(), MachineSnapshot()) == {}
    queue = Forecast("queue:m", Level.CRITICAL, text="queue full: new requests are refused")
    ram = Forecast("ram", Level.WATCH, text="1.2 GB to the limit, steady")
    signs = settle(Signs(), MachineSnapshot(), (ram, queue))
    assert (signs["queue:m"].level, signs["queue:m"].kind) == (Level.WARN, OTHER)
    assert signs["queue:m"].text == "'m': queue full: new requests are refused"
    assert (signs["ram"].kind, signs["ram"].text) == (MEMORY, "RAM: 1.2 GB to the limit, steady")


def test_a_spike_of_pressure_is_no_alert() -> None:
    signs, calm = Signs(), MachineSnapshot(memory_some_avg10_percent=0.0, memory_full_avg10_percent=0.0)
    spike = replace(calm, memory_full_avg10_percent=90.0)
    levels = [signs.read(float(t), (), spike if t == 5 else calm)[0].level for t in range(20)]
    assert set(levels) == {Level.CALM}


def test_every_alert_has_a_stable_form_and_its_figures() -> None:
    machine = MachineSnapshot(
        ram_total_bytes=16 * GIB,
        ram_used_bytes=16 * GIB,
        memory_some_avg10_percent=60.0,
        memory_full_avg10_percent=50.0,
        swap_in_bytes_per_s=30e6,
        disk_free_bytes=10**8,
        cpu_temperature_c=99.0,
        cpu_throttle="heat",
    )
    signs, forecaster, guard = Signs(), Forecaster(), Scene().guard
    for step in range(60):
        now_s = step * 0.25
        forecasts = forecaster.update(now_s, machine, {"m": (64, 64)}, GuardConfig())
        guard.update(now_s, now_s, signs.read(now_s, forecasts, machine), (), "warn")
    found = {a.resource: (a.kind, a.values) for a in guard.snapshot().alerts}
    assert {resource: kind for resource, (kind, _) in found.items()} == {
        "ram": "over_limit",
        "queue:m": "queue_full",
        "pressure": "pressure",
        "swap": "swap",
        "disk": "disk",
        "temperature": "heat",
        "throttle": "throttle",
    }
    assert found["ram"][1]["headroom_bytes"] == -2 * GIB
    assert found["queue:m"][1]["places"] == 0
    assert found["pressure"][1]["percent"] == 60.0
    assert found["swap"][1] == {"bytes_per_s": 30e6}
    assert found["disk"][1] == {"free_bytes": 10**8}
    assert found["temperature"][1] == {"celsius": 99.0}
    assert json.loads(msgspec.json.encode(guard.snapshot()))["alerts"][0]["kind"]
