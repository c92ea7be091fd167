"""The guard and survival in a whole node: real workers of the fake engine, a machine whose memory the test sets."""

from __future__ import annotations

import http.client
import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil
import pytest

from laya_desktop.errors import LayaError
from laya_desktop.state.enums import Level, ModelState
from laya_desktop.state.events import AlertCleared, AlertRaised, GuardActed, ModelFailed
from laya_desktop.state.snapshot import ModelSnapshot
from tests.helpers.machine import GIB, ScriptedMachine
from tests.helpers.session import Running, running

CHAT = {"messages": [{"role": "user", "content": "hello"}], "temperature": 0}
CALM, WARN, FULL = 4 * GIB, 15 * GIB + GIB // 2, 16 * GIB


@pytest.fixture
def machine() -> ScriptedMachine:
    return ScriptedMachine()


@pytest.fixture
def start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: ScriptedMachine
) -> Iterator[Callable[..., Running]]:
    """Starts a node with these models and this mode of the guard."""
    monkeypatch.setenv("LAYA_HOME", str(tmp_path / "home"))
    with ExitStack() as nodes:

        def begin(*models: str, mode: str = "shed") -> Running:
            names = [m.split(",")[0].removeprefix("{name: ") for m in models]
            routes = [
                f"{{name: {kind}-{n}, match: {{prefix: /{kind}/{n}}}, target: {n}, priority: {kind}}}"
                for n in names
                for kind in ("batch", "interactive")
            ]
            guard = f"guard: {{mode: {mode}, reserve_ram: 0, mem_fraction: 1.0}}"
            lines = ["version: 1", "server: {port: 0}", guard, "models:", *(f"  - {m}" for m in models)]
            text = "\n".join([*lines, "routes:", *(f"  - {r}" for r in routes)])
            return nodes.enter_context(running(tmp_path / "laya.yaml", text, machine))

        yield begin


def fake(name: str, settings: str = "tokens=3", rest: str = "batch_size: 1") -> str:
    return f'{{name: {name}, engine: fake, path: "fake:{settings}", {rest}}}'


def of(node: Running, name: str) -> ModelSnapshot:
    found = node.snapshot.model(name)
    assert found is not None
    return found


class Asking(threading.Thread):
    """A request on a thread of its own."""

    def __init__(self, node: Running, path: str, **fields: Any) -> None:
        super().__init__()
        self.status: int | None = None
        self.text = ""
        self._args = (node, path, {**CHAT, **fields})
        self.start()

    def run(self) -> None:
        node, path, body = self._args
        connection = http.client.HTTPConnection(node.netloc, timeout=60)
        try:
            connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
            response = connection.getresponse()
            self.status = response.status
            self.text = response.read().decode()
        finally:
            connection.close()

    def done(self) -> Asking:
        self.join(60)
        assert not self.is_alive(), "no answer in time"
        return self

    @property
    def error(self) -> dict[str, Any]:
        return json.loads(self.text)["error"]


def test_from_warn_to_critical_and_back(start: Callable[..., Running], machine: ScriptedMachine) -> None:
    node = start(
        fake("a", "tokens=400,itl_ms=20", "batch_size: 2"), fake("idle"), fake("kept", rest="pin: true"), fake("c")
    )
    for name in ("a", "idle", "kept"):
        node.service.load_model(name).result(20)
    machine.used_bytes = WARN
    node.until(lambda s: s.guard.level is Level.WARN)
    node.until(lambda s: [a.kind for a in s.guard.actions] == ["hold_batch"])
    held = Asking(node, "/batch/idle")
    assert Asking(node, "/interactive/idle").done().status == 200
    node.until(lambda s: any("the guard holds batch" in (r.waiting_for or "") for r in s.requests))
    long = Asking(node, "/interactive/a", max_tokens=350)
    node.until(lambda s: s.model("a").running == 1)

    machine.used_bytes = FULL
    full = node.until(lambda s: s.guard.level is Level.CRITICAL)
    assert "RAM" in full.guard.text
    node.until(lambda s: {"refuse_batch", "refuse_loads"} <= {a.kind for a in s.guard.actions})
    status, body, headers = node.ask("POST", "/batch/a", CHAT)
    assert (status, json.loads(body)["error"]["code"]) == (503, "overloaded")
    assert "RAM" in json.loads(body)["error"]["message"]
    assert int(headers["retry-after"]) > 0
    status, body, headers = node.ask("POST", "/interactive/c", CHAT)
    assert (status, json.loads(body)["error"]["code"]) == (503, "overloaded")
    assert "retry-after" in headers
    assert of(node, "c").pid is None
    assert held.is_alive(), "what waited for a held class goes on waiting"

    machine.used_bytes = CALM
    calm = node.until(lambda s: s.guard.level is Level.CALM and not s.guard.actions)
    assert held.done().status == 200
    assert long.done().status == 200
    assert json.loads(long.text)["usage"]["completion_tokens"] == 350
    assert node.ask("POST", "/batch/a", CHAT | {"max_tokens": 2})[0] == 200
    past = calm.guard.alerts[0]
    assert (past.resource, past.peak) == ("ram", Level.CRITICAL)
    assert past.cleared_unix_s is not None
    assert "Batch requests wait" in past.actions
    assert len(node.told(AlertRaised)) == 2
    assert node.told(AlertCleared)
    assert of(node, "kept").state is ModelState.READY


def test_an_idle_model_goes_and_a_person_may_take_that_back(
    start: Callable[..., Running], machine: ScriptedMachine
) -> None:
    node = start(fake("idle"), fake("kept", rest="pin: true"))
    for name in ("idle", "kept"):
        node.service.load_model(name).result(20)
    machine.used_bytes = FULL
    node.until(lambda s: s.model("idle").state is ModelState.UNLOADED)
    assert of(node, "kept").state is ModelState.READY
    acted = node.wait_told(GuardActed, "'idle'")
    assert "RAM" in acted.reason
    with pytest.raises(LayaError, match="at its limit"):
        node.service.load_model("idle").result(20)
    status, body, _ = node.ask("POST", f"/admin/guard/{acted.action_id}/undo")
    assert (status, json.loads(body)["undone"]) == (200, "Idle model 'idle' is unloaded")
    node.until(lambda s: s.model("idle").state is ModelState.READY)
    shown = json.loads(node.ask("GET", "/admin/guard")[1])
    assert shown["level"] == "critical"
    assert acted.action_id not in [a["action_id"] for a in shown["actions"]]
    with pytest.raises(LayaError, match="no action"):
        node.service.undo_guard_action("g999").result(5)


@pytest.mark.parametrize("mode", ["warn", "off"])
def test_warn_only_says_and_off_is_silent(start: Callable[..., Running], machine: ScriptedMachine, mode: str) -> None:
    node = start(fake("a"), fake("b"), mode=mode)
    node.service.load_model("a").result(20)
    machine.used_bytes = FULL
    node.until(lambda s: any(f.level is Level.CRITICAL for f in s.forecasts))
    node.service.load_model("b").result(20)
    assert node.ask("POST", "/batch/a", CHAT)[0] == 200
    assert of(node, "a").state is ModelState.READY
    assert not node.told(GuardActed)
    assert node.snapshot.guard.level is (Level.CRITICAL if mode == "warn" else Level.CALM)


def test_what_will_not_fit_is_refused_with_numbers_and_loaded_once_when_a_person_insists(
    start: Callable[..., Running], machine: ScriptedMachine
) -> None:
    node = start(fake("big", "memory_mib=14000"), fake("small", "memory_mib=4000", "mem_fraction: 0.2"))
    node.until(lambda s: s.machine.ram_total_bytes is not None)
    status, body, headers = node.ask("POST", "/interactive/big", CHAT)
    error = json.loads(body)["error"]
    assert (status, error["code"]) == (503, "will_not_fit")
    assert "13.7 GiB; 12.0 GiB are free" in error["message"]
    assert "Load anyway" in error["message"]
    assert "retry-after" in headers
    assert node.ask("POST", "/interactive/big", CHAT)[0] == 503
    shown = node.until(lambda s: s.model("big").state is ModelState.FAILED).model("big")
    assert (shown.error_code, shown.pid) == ("will_not_fit", None)
    with pytest.raises(LayaError) as refused:
        node.service.load_model("small").result(20)
    assert refused.value.code == "will_not_fit"
    assert "mem_fraction 0.2 of this model" in refused.value.message
    node.service.load_model("big", override=True).result(20)
    node.until(lambda s: s.model("big").state is ModelState.READY)
    assert node.ask("POST", "/interactive/big", CHAT)[0] == 200
    node.service.unload_model("big").result(20)
    with pytest.raises(LayaError, match="will not fit"):
        node.service.load_model("big").result(20)


def test_a_load_that_ran_out_of_memory_is_not_repeated_as_it_was(start: Callable[..., Running]) -> None:
    node = start(fake("m", "load_mib=600", "mem_fraction: 0.01"), fake("other"), mode="off")
    node.service.load_model("other").result(20)
    with pytest.raises(LayaError) as died:
        node.service.load_model("m").result(20)
    assert died.value.code == "out_of_memory"
    assert "ran out of memory" in died.value.message
    with pytest.raises(LayaError, match="ran out of memory before") as refused:
        node.service.load_model("m").result(20)
    assert refused.value.code == "out_of_memory"
    assert of(node, "other").state is ModelState.READY
    node.service.load_model("m", override=True).result(20)
    assert node.ask("POST", "/interactive/m", CHAT)[0] == 200


def test_a_preloaded_model_meets_the_same_gate(start: Callable[..., Running]) -> None:
    node = start(
        fake("big", "memory_mib=14000", "preload: true"),
        fake("grows", "load_mib=600", "preload: true, mem_fraction: 0.01"),
    )
    refused = node.until(lambda s: s.model("big").state is ModelState.FAILED).model("big")
    assert refused.error_code == "will_not_fit"
    assert (
        node.until(lambda s: s.model("grows").state is ModelState.FAILED).model("grows").error_code == "out_of_memory"
    )


def kill(node: Running, name: str) -> int:
    pid = (
        node.until(lambda s: s.model(name).state is ModelState.READY and s.model(name).pid is not None).model(name).pid
    )
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    node.until(lambda s: s.model(name).pid != pid)
    return pid


def test_a_killed_worker_comes_back_what_waits_is_answered_and_the_third_death_ends_it(
    start: Callable[..., Running],
) -> None:
    node = start(fake("m", "tokens=300,itl_ms=20"), fake("other"))
    for name in ("m", "other"):
        node.service.load_model(name).result(20)
    victim = Asking(node, "/interactive/m", max_tokens=200)
    node.until(lambda s: s.model("m").running == 1)
    waiting = Asking(node, "/interactive/m", max_tokens=2)
    node.until(lambda s: s.model("m").waiting == 1)
    first = kill(node, "m")
    assert victim.done().status == 503
    assert "SIGKILL" in victim.error["message"]
    assert waiting.done().status == 200
    assert "started again in 1 s" in node.wait_told(ModelFailed).error
    assert not psutil.pid_exists(first)
    node.until(lambda s: s.model("m").restarts == 1)

    kill(node, "m")
    node.until(
        lambda s: s.model("m").state is ModelState.FAILED and "starts again in" in (s.model("m").load_note or "")
    )
    node.until(lambda s: s.model("m").state is ModelState.READY)
    kill(node, "m")
    gone = node.until(lambda s: s.model("m").error_code == "restarts_ended").model("m")
    assert gone.state is ModelState.FAILED
    assert "3 times within 5 minutes" in gone.error
    assert "load it by hand" in gone.error
    status, body, headers = node.ask("POST", "/interactive/m", CHAT)
    assert (status, json.loads(body)["error"]["code"]) == (503, "restarts_ended")
    assert int(headers["retry-after"]) > 60
    assert of(node, "other").state is ModelState.READY
    node.service.load_model("m").result(20)
    assert node.ask("POST", "/interactive/m", CHAT | {"max_tokens": 2})[0] == 200
    node.until(lambda s: s.model("m").restarts == 0)


def test_unloading_calls_a_restart_off(start: Callable[..., Running]) -> None:
    node = start(fake("m", "tokens=300,itl_ms=20"))
    node.service.load_model("m").result(20)
    kill(node, "m")
    node.until(lambda s: "starts again" in (s.model("m").load_note or ""))
    waiting = Asking(node, "/interactive/m", max_tokens=2)
    node.until(lambda s: s.model("m").waiting == 1)
    node.service.unload_model("m").result(20)
    assert waiting.done().status == 503
    after = node.until(lambda s: s.model("m").state is ModelState.UNLOADED).model("m")
    assert after.load_note is None
