"""A node that is not there: everything the window may ask of a service, recorded, with answers set by the test.

``FakeService()`` settles futures at once; ``FakeService(manual=True)`` leaves them open in ``calls`` until the test
calls ``settle`` or ``fail``. ``publish`` puts a new snapshot in force with the next ``seq``.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

from laya_desktop.config.key_edits import with_new_admin_key, with_new_key, without_admin_key, without_key
from laya_desktop.config.schema import ModelConfig, NodeConfig
from laya_desktop.errors import LayaError
from laya_desktop.state.enums import NodeState, Verdict
from laya_desktop.state.events import Event
from laya_desktop.state.snapshot import (
    CandidateExplanation,
    FoundModel,
    MemoryEstimate,
    ModelFileInfo,
    NodeSnapshot,
    NodeStatus,
    RouteExplanation,
)

GB = 1_000_000_000


@dataclass
class Call:
    """One recorded command."""

    name: str
    args: tuple[Any, ...]
    answer: Any
    future: Future[Any] = field(default_factory=Future)


class FakeService:
    """Satisfies ``NodeServiceApi``.

    Attributes:
        calls: every command, oldest first.
        answers: by command name, what its future resolves to; a ``LayaError`` makes it fail. Settable.
    """

    def __init__(self, snapshot: NodeSnapshot | None = None, *, manual: bool = False) -> None:
        self._snapshot = snapshot or NodeSnapshot(seq=1, config=NodeConfig())
        self._events: deque[Event] = deque()
        self.manual = manual
        self.calls: list[Call] = []
        self.answers: dict[str, Any] = {
            "save_config": Path("app.yaml"),
            "export_config": Path("copy.yaml"),
            "diff_config": "--- app.yaml\n+++ app.yaml (unsaved)\n@@ -1 +1,2 @@\n version: 1\n+routes: []\n",
            "cancel_request": True,
            "undo_guard_action": "Batch requests wait",
            "create_api_key": "laya-made-by-the-fake",
            "create_admin_key": "laya-admin-made-by-the-fake",
            "explain_route": RouteExplanation(
                winner="chat",
                target="my-llm-7b",
                reason="longest prefix /v1/model",
                stripped_path="/chat/completions",
                candidates=(
                    CandidateExplanation("chat", True, "longest prefix /v1/model"),
                    CandidateExplanation("users", False, "the regex does not match"),
                ),
            ),
            "inspect_model": ModelFileInfo(
                path="/data/models/my-llm-7b-q4_k_m.gguf",
                size_bytes=4_370_000_000,
                architecture="llama",
                name="my llm 7b",
                parameters=6_740_000_000,
                quantisation="Q4_K_M",
                context_length=4096,
                layers=32,
                embedding_length=4096,
                has_chat_template=True,
            ),
            "find_models": (),
            "estimate_model": MemoryEstimate(
                verdict=Verdict.FITS,
                reason="Takes 6.7 GB of 22.8 GB free.",
                device="cpu",
                weights_bytes=4_370_000_000,
                kv_cache_bytes=2_147_000_000,
                compute_bytes=180_000_000,
                total_bytes=6_697_000_000,
                free_bytes=22_800_000_000,
            ),
        }

    @property
    def snapshot(self) -> NodeSnapshot:
        return self._snapshot

    def publish(self, snapshot: NodeSnapshot | None = None, **changes: Any) -> NodeSnapshot:
        """Put a snapshot (or the current one with changed fields) in force under the next ``seq``."""
        self._snapshot = replace(snapshot or self._snapshot, seq=self._snapshot.seq + 1, **changes)
        return self._snapshot

    def emit(self, *events: Event) -> None:
        """Queue events for the next poll."""
        self._events.extend(events)

    def called(self, name: str) -> list[Call]:
        """Recorded calls of that command."""
        return [call for call in self.calls if call.name == name]

    def settle(self, name: str, result: Any = None) -> None:
        """Resolve the oldest open call of that command."""
        next(c for c in self.called(name) if not c.future.done()).future.set_result(result)

    def fail(self, name: str, error: Exception) -> None:
        """Fail the oldest open call of that command."""
        next(c for c in self.called(name) if not c.future.done()).future.set_exception(error)

    def drain_events(self) -> list[Event]:
        events = list(self._events)
        self._events.clear()
        return events

    def _call(self, name: str, *args: Any) -> Future[Any]:
        call = Call(name, args, self.answers.get(name))
        self.calls.append(call)
        if self.manual:
            return call.future
        if isinstance(call.answer, Exception):
            call.future.set_exception(call.answer)
            return call.future
        self._act(name, args)
        call.future.set_result(call.answer)
        return call.future

    def _act(self, name: str, args: tuple[Any, ...]) -> None:
        """What a real node would show after the command, as far as the window needs it."""
        snapshot = self._snapshot
        status = snapshot.config_status
        if name in ("start_node", "stop_node"):
            state = NodeState.RUNNING if name == "start_node" else NodeState.STOPPED
            self.publish(node=replace(snapshot.node, state=state, error=None))
        elif name == "apply_config":
            changes = (*status.unsaved, f"change {len(status.unsaved) + 1}")
            self.publish(config=args[0], config_status=replace(status, revision=status.revision + 1, unsaved=changes))
        elif name in ("create_api_key", "revoke_api_key", "create_admin_key", "revoke_admin_key"):
            edits = {
                "create_api_key": lambda c: with_new_key(c, args[0], date(2026, 12, 1))[0],
                "revoke_api_key": lambda c: without_key(c, args[0]),
                "create_admin_key": lambda c: with_new_admin_key(c, date(2026, 12, 1))[0],
                "revoke_admin_key": without_admin_key,
            }
            self.publish(config=edits[name](snapshot.config))
        elif name == "save_config":
            path = str(args[0]) if args[0] else status.path
            self.publish(config_status=replace(status, path=path, unsaved=(), changed_on_disk=False))
        elif name in ("revert_config", "open_config"):
            path = str(args[0]) if args else status.path
            self.publish(config_status=replace(status, path=path, unsaved=(), changed_on_disk=False))

    def start_node(self) -> Future[None]:
        return self._call("start_node")

    def stop_node(self) -> Future[None]:
        return self._call("stop_node")

    def load_model(self, name: str, device: str | None = None, *, override: bool = False) -> Future[None]:
        return self._call("load_model", name, device, *((True,) if override else ()))

    def undo_guard_action(self, action_id: str) -> Future[str]:
        return self._call("undo_guard_action", action_id)

    def unload_model(self, name: str) -> Future[None]:
        return self._call("unload_model", name)

    def clear_cache(self, name: str) -> Future[None]:
        return self._call("clear_cache", name)

    def cancel_request(self, request_id: str) -> Future[bool]:
        return self._call("cancel_request", request_id)

    def apply_config(self, config: NodeConfig) -> Future[None]:
        return self._call("apply_config", config)

    def save_config(self, path: Path | None = None, *, overwrite: bool = False) -> Future[Path]:
        return self._call("save_config", path, overwrite)

    def export_config(self, path: Path) -> Future[Path]:
        return self._call("export_config", path)

    def diff_config(self) -> Future[str]:
        return self._call("diff_config")

    def revert_config(self) -> Future[None]:
        return self._call("revert_config")

    def open_config(self, path: Path) -> Future[None]:
        return self._call("open_config", path)

    def create_api_key(self, name: str) -> Future[str]:
        return self._call("create_api_key", name)

    def revoke_api_key(self, name: str) -> Future[None]:
        return self._call("revoke_api_key", name)

    def create_admin_key(self) -> Future[str]:
        return self._call("create_admin_key")

    def revoke_admin_key(self) -> Future[None]:
        return self._call("revoke_admin_key")

    def explain_route(
        self, method: str, path: str, headers: dict[str, str], model: str | None
    ) -> Future[RouteExplanation]:
        return self._call("explain_route", method, path, headers, model)

    def inspect_model(self, path: Path) -> Future[ModelFileInfo]:
        return self._call("inspect_model", path)

    def find_models(self) -> Future[tuple[FoundModel, ...]]:
        return self._call("find_models")

    def estimate_model(self, model: ModelConfig, device: str | None = None) -> Future[MemoryEstimate]:
        return self._call("estimate_model", model, device)

    def close(self) -> None:
        self.calls.append(Call("close", (), None))


def changed_on_disk(path: str = "app.yaml") -> LayaError:
    """What ``save_config`` fails with when somebody else wrote the file."""
    return LayaError(
        f"{path} has changed on disk since it was read.",
        hint="Reload it, overwrite it, or save under another name.",
        code="changed_on_disk",
        status=409,
    )


def running(host: str = "127.0.0.1", port: int = 5292) -> NodeStatus:
    """A node that listens."""
    return NodeStatus(state=NodeState.RUNNING, host=host, port=port, url=f"http://{host}:{port}")
