"""Models and waiting requests as the world sees them: frozen snapshots and words. Reads, never changes; node thread."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from laya_desktop.state.enums import ModelState
from laya_desktop.state.snapshot import CacheSnapshot, ModelSnapshot, SlotSnapshot

if TYPE_CHECKING:
    from laya_desktop.node.engines.base import Loaded
    from laya_desktop.node.generation import GenerationStream
    from laya_desktop.node.runtime import ModelRuntime
    from laya_desktop.node.telemetry import WorkerUsage

_SEPARATOR = "#"
"""Between a model's name and its replica's number in the names that sensors use."""


def worker_names(model: str, pids: tuple[int, ...]) -> dict[str, int]:
    """Process ids of a model's replicas by a name for each: the model's own for the first."""
    return {(f"{model}{_SEPARATOR}{i}" if i else model): pid for i, pid in enumerate(pids)}


def waiting_for(runtime: ModelRuntime) -> str:
    """What a request of this model waits for, in words."""
    if runtime.load_note is not None:
        return runtime.load_note
    if runtime.restart_in_s is not None:
        return "the model to be started again"
    if runtime.state is ModelState.LOADING:
        done = f" ({runtime.progress:.0%})" if runtime.progress else ""
        return f"the model to load{done}"
    if runtime.state is ModelState.UNLOADING:
        return "the model to be loaded again"
    return "a free slot" if runtime.state is ModelState.READY else "the model to load"


def model_snapshot(
    runtime: ModelRuntime,
    usage: Mapping[str, WorkerUsage],
    streams: Mapping[int, GenerationStream],
    *,
    counts: tuple[int, int],
    rates: tuple[float, float],
    requests_total: int,
    expected_wait_s: float | None,
    cache: CacheSnapshot | None,
) -> ModelSnapshot:
    """One model.

    Args:
        runtime: the model.
        usage: sensors by worker name.
        streams: running answers by slot id.
        counts: waiting and running requests.
        rates: tokens per second of prefill and decode.
        requests_total: admitted since the node started.
        expected_wait_s: of a request that came now.
        cache: its response cache.
    """
    loaded, handle = runtime.loaded, runtime.handle
    pids = handle.pids if handle else ()
    ceiling = (handle.ceiling if handle else None) or (None, None, None)
    used = [usage[name] for name in worker_names(runtime.name, pids) if name in usage]
    return ModelSnapshot(
        name=runtime.name,
        state=runtime.state,
        progress=runtime.progress,
        error=str(runtime.error) if runtime.error else None,
        error_code=runtime.error.code if runtime.error else None,
        restarts=runtime.deaths,
        log_tail=runtime.log_tail,
        device=loaded.device if loaded else None,
        device_note=_notes(loaded) if loaded else None,
        offloaded_layers=loaded.offloaded_layers if loaded else None,
        total_layers=loaded.total_layers if loaded else None,
        slots=_slots(runtime, streams),
        waiting=counts[0],
        running=counts[1],
        queue_limit=runtime.config.queue.max_waiting,
        max_seq_len=loaded.max_seq_len if loaded else None,
        prefill_tokens_per_s=rates[0],
        decode_tokens_per_s=rates[1],
        pid=pids[0] if pids else None,
        cpu_percent=_sum([u.cpu_percent for u in used]),
        rss_bytes=_whole(_sum([u.rss_bytes for u in used])),
        vram_bytes=_whole(_sum([u.vram_bytes for u in used])),
        ceiling_kind=ceiling[0],
        ceiling_bytes=ceiling[1],
        ceiling_note=ceiling[2] or None,
        load_s=loaded.load_s if loaded else None,
        requests_total=requests_total,
        last_used_unix_s=runtime.last_used_unix_s,
        changed_keys=runtime.changed_keys,
        replicas=runtime.config.replicas,
        pids=pids,
        pinned=runtime.config.pin,
        load_note=_load_note(runtime),
        expected_wait_s=expected_wait_s,
        cache=cache,
    )


def _load_note(runtime: ModelRuntime) -> str | None:
    if (restart_s := runtime.restart_in_s) is not None:
        return f"starts again in {restart_s:.0f} s"
    return runtime.load_note


def _notes(loaded: Loaded) -> str | None:
    """What there is to say about a load: the choice of device, a missing template, a context beyond the trained one."""
    return " ".join(note for note in (loaded.device_note, *loaded.notes) if note) or None


def _slots(runtime: ModelRuntime, streams: Mapping[int, GenerationStream]) -> tuple[SlotSnapshot, ...]:
    if runtime.loaded is None or runtime.handle is None:
        return ()
    slots = []
    for slot_id, tokens in runtime.handle.slot_tokens.items():
        stream = streams.get(slot_id)
        if stream is None:
            slots.append(SlotSnapshot(slot_id, kv_cache_tokens=tokens))
        else:
            slots.append(SlotSnapshot(slot_id, stream.record.phase, stream.ticket.request_id, tokens))
    return tuple(slots)


def _sum(values: list[float | None] | list[int | None]) -> float | None:
    known = [v for v in values if v is not None]
    return sum(known) if known else None


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
