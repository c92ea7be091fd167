"""What a model's card says: its snapshot and configuration in words. Pure; runs on the Qt thread; imports no Qt.

A card shows what the worker reports, never what was asked for: "GPU" stands only beside layers that were measured
there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from laya_desktop.errors import LayaError
from laya_desktop.gui import format as fmt
from laya_desktop.gui.i18n import tr
from laya_desktop.gui.qtmodels.load_words import first_sentence, sentences
from laya_desktop.state.enums import ModelState, Phase
from laya_desktop.state.snapshot import ModelSnapshot

if TYPE_CHECKING:
    from laya_desktop.config.schema import ModelConfig, NodeConfig
    from laya_desktop.state.snapshot import Capability, MachineSnapshot, ModelFileInfo, NodeSnapshot, SlotSnapshot

_TONES = {ModelState.READY: "calm", ModelState.FAILED: "critical", ModelState.UNLOADED: "neutral"}
_PILL_CHARS = 44
OVERRIDABLE = ("will_not_fit", "out_of_memory", "overloaded")


@dataclass(frozen=True, slots=True)
class SlotCell:
    """One lane of the strip. ``kind``: free, prefill or decode."""

    text: str
    kind: str


@dataclass(frozen=True, slots=True)
class CardValues:
    """Everything that a card shows; compared by value, so that a card repaints only what differs."""

    name: str
    meta: str
    state: ModelState
    pill: str
    tone: str
    note: str = ""
    """Why this device, and what to know; one line."""
    note_tone: str = ""
    error: str = ""
    log_tail: tuple[str, ...] = ()
    progress: float | None = None
    slots: tuple[SlotCell, ...] = ()
    queue: str = ""
    can_load: bool = False
    gpu_reason: str = ""
    """Why the GPU button is disabled; empty where it is not."""
    gpu_reason_short: str = ""
    """Its first sentence, for where the whole does not fit."""
    can_unload: bool = False
    reload: str = ""
    """What changed since it was loaded and acts at the next load; empty where nothing did."""
    used_by: tuple[str, ...] = ()
    cache: str = ""
    """What the response cache was worth; empty while it is off and empty."""
    can_override: bool = False
    """The guard refused the load, or it ran out of memory: a person may insist."""

    def mentions(self, text: str) -> bool:
        """True where the filter's text is part of what the card says."""
        words = f"{self.name} {self.meta} {self.pill}".lower()
        return all(word in words for word in text.lower().split())


def card_values(
    model: ModelConfig, snapshot: NodeSnapshot, config: NodeConfig, file: ModelFileInfo | LayaError | None = None
) -> CardValues:
    """The card of a configured model. ``file``: its metadata, or what is wrong with it; None: not read yet."""
    live = snapshot.model(model.name) or ModelSnapshot(name=model.name)
    ready = live.state is ModelState.READY
    reason = torch_gpu_reason(snapshot.machine) if model.engine == "transformers" else gpu_reason(snapshot.capability)
    info = None if isinstance(file, LayaError) else file
    fault = str(file) if isinstance(file, LayaError) and live.state is ModelState.UNLOADED else ""
    return CardValues(
        name=model.name,
        meta=" · ".join(_meta(model, live, info)),
        state=live.state,
        pill=pill_text(live),
        tone=_TONES.get(live.state, "watch"),
        note=fault or sentences(live.device_note or ""),
        note_tone="warn" if fault or (ready and _fell_back(model, live)) else "",
        error=(live.error or tr("The load failed and left no reason. The log has the details."))
        if live.state is ModelState.FAILED
        else "",
        log_tail=live.log_tail if live.state is ModelState.FAILED else (),
        progress=live.progress if live.state is ModelState.LOADING else None,
        slots=tuple(_slot(s) for s in live.slots) if ready else (),
        queue=_queue(live) if ready else "",
        can_load=live.state in (ModelState.UNLOADED, ModelState.FAILED),
        gpu_reason=reason,
        gpu_reason_short=first_sentence(reason),
        can_unload=live.state in (ModelState.READY, ModelState.LOADING),
        reload=reload_text(model, live),
        used_by=routes_to(model.name, config),
        cache=cache_text(live),
        can_override=live.state is ModelState.FAILED and live.error_code in OVERRIDABLE,
    )


def cache_text(live: ModelSnapshot) -> str:
    """``Cache: 12 of 40 requests, 30 s saved · 28 answers, 64 kB``; empty where there is nothing to say."""
    cache = live.cache
    if cache is None:
        return ""
    asked = cache.hits + cache.misses
    kept = tr("{entries} answers, {size}", entries=fmt.count(cache.entries), size=fmt.size(cache.bytes))
    if not asked:
        return tr("Cache: {kept}", kept=kept)
    saved = fmt.seconds(cache.saved_s)
    return tr(
        "Cache: {hits} of {asked} requests, {saved} saved · {kept}",
        hits=cache.hits,
        asked=asked,
        saved=saved,
        kept=kept,
    )


def pill_text(live: ModelSnapshot) -> str:
    """The state in a few words, with the device that is really in use."""
    match live.state:
        case ModelState.READY:
            return tr("Ready · {device_text}", device_text=device_text(live))
        case ModelState.LOADING:
            return tr("Loading") if live.progress is None else tr("Loading {value:.0f} %", value=live.progress * 100)
        case ModelState.UNLOADING:
            return tr("Unloading")
        case ModelState.FAILED if live.load_note:
            return tr("Died, {load_note}", load_note=live.load_note)
        case ModelState.FAILED:
            return tr("Failed: {short_reason}", short_reason=short_reason(live.error))
        case _:
            return tr("Not loaded")


def device_text(live: ModelSnapshot) -> str:
    """``GPU, 33 of 33 layers`` where layers are there; ``CPU``; else the worker's own word."""
    if live.offloaded_layers:
        total = tr(" of {total_layers}", total_layers=live.total_layers) if live.total_layers else ""
        return tr("GPU, {offloaded_layers}{total} layers", offloaded_layers=live.offloaded_layers, total=total)
    if live.device is None or live.offloaded_layers == 0 or live.device.upper().startswith("CPU"):
        return "CPU" if live.device is not None or live.offloaded_layers == 0 else tr("device unknown")
    return live.device


def short_reason(error: str | None) -> str:
    """The kernel of an error for the pill; the card shows all of it.

    What stands before a colon, unless that only names the model: ``Out of memory: needs …`` → ``out of memory``,
    ``Cannot load 'x': no such file.`` → ``no such file``.
    """
    if not error:
        return tr("no reason given")
    head, _, tail = error.split(". ")[0].rstrip(".").partition(": ")
    clause = tail if tail and any(mark in head for mark in "'\"“") else head
    clause = clause[:1].lower() + clause[1:] if clause[1:2].islower() else clause
    return clause if len(clause) <= _PILL_CHARS else f"{clause[: _PILL_CHARS - 1].rstrip()}…"


def gpu_reason(capability: Capability) -> str:
    """Why nothing can be loaded on a GPU; empty where it can."""
    if not capability.probed:
        return tr("Looking for a GPU …")
    if capability.gpu_available:
        return ""
    return sentences(capability.reason or "") or tr("No GPU that this build can use was found.")


def torch_gpu_reason(machine: MachineSnapshot) -> str:
    """The same for PyTorch, whose build nobody asks before a load: only that a GPU is there."""
    if any(g.vram_total_bytes for g in machine.gpus):
        return ""
    if machine.gpus:
        return tr("No GPU that this build can use was found.")
    return machine.gpu_reason or tr("No GPU was found on this machine.")


def reload_text(model: ModelConfig, live: ModelSnapshot) -> str:
    """Which settings differ from the ones in use; empty while not loaded or where none does."""
    if live.state is not ModelState.READY:
        return ""
    changed = []
    if live.slots and len(live.slots) != model.batch_size:
        changed.append(tr("slots {slots} → {batch_size}", slots=len(live.slots), batch_size=model.batch_size))
    if live.max_seq_len is not None and live.max_seq_len != model.max_seq_len:
        changed.append(
            tr(
                "context {max_seq_len} → {max_seq_len2}",
                max_seq_len=fmt.count(live.max_seq_len),
                max_seq_len2=fmt.count(model.max_seq_len),
            )
        )
    changed += [key for key in live.changed_keys if key not in ("batch_size", "max_seq_len")]
    return ", ".join(changed)


def routes_to(name: str, config: NodeConfig) -> tuple[str, ...]:
    """Names of the routes that lead to a model, also as one of several targets or as a fallback."""
    if not _LEADS or _LEADS[0][0] is not config:
        leads: dict[str, list[str]] = {}
        for route in config.routes:
            for target in dict.fromkeys(route.all_names):
                leads.setdefault(target, []).append(route.name)
        _LEADS[:] = [(config, {target: tuple(routes) for target, routes in leads.items()})]
    return _LEADS[0][1].get(name, ())


_LEADS: list[tuple[NodeConfig, dict[str, tuple[str, ...]]]] = []
"""The configuration that was looked at last, and its routes by target: every card asks about the same one."""


def parameters_text(parameters: int | None) -> str:
    """A parameter count as model names say it: ``135M``, ``7B``, ``6.7B``; empty where unknown."""
    if not parameters:
        return ""
    for size, unit in ((1e12, "T"), (1e9, "B"), (1e6, "M")):
        if parameters >= size * 0.9995:
            value = parameters / size
            return f"{value:.0f}{unit}" if value >= 9.95 else f"{value:.1f}{unit}".replace(".0", "")
    return fmt.count(parameters)


def _compact(tokens: int) -> str:
    return str(tokens) if tokens < 1000 else f"{tokens / 1000:.1f}k".replace(".0k", "k")


def _meta(model: ModelConfig, live: ModelSnapshot, info: ModelFileInfo | None) -> list[str]:
    parts = []
    if info is not None:
        kind = " ".join(p for p in (info.architecture, parameters_text(info.parameters)) if p)
        parts += [p for p in (kind, info.quantisation, fmt.size(info.size_bytes)) if p]
    loaded = live.state is ModelState.READY
    slots = len(live.slots) if loaded and live.slots else model.batch_size
    tokens = live.max_seq_len if loaded and live.max_seq_len else model.max_seq_len
    parts.append(tr("{tokens} tokens × {counted}", tokens=fmt.count(tokens), counted=fmt.counted(slots, "slot")))
    if loaded:
        if live.vram_bytes:
            parts.append(tr("{vram_bytes} VRAM", vram_bytes=fmt.size(live.vram_bytes)))
        if live.rss_bytes is not None:
            parts.append(tr("{rss_bytes} RAM", rss_bytes=fmt.size(live.rss_bytes)))
        parts.append(fmt.rate(live.decode_tokens_per_s))
    return parts


def _slot(slot: SlotSnapshot) -> SlotCell:
    tokens = _compact(slot.kv_cache_tokens)
    number = slot.slot_id + 1
    if slot.phase is Phase.DECODE:
        return SlotCell(tr("{number} decoding {tokens}", number=number, tokens=tokens), "decode")
    if slot.phase is Phase.PREFILL:
        return SlotCell(tr("{number} prefill {tokens}", number=number, tokens=tokens), "prefill")
    cached = tr(" · {tokens} cached", tokens=tokens) if slot.kv_cache_tokens else ""
    return SlotCell(tr("{number} free{cached}", number=number, cached=cached), "free")


def _queue(live: ModelSnapshot) -> str:
    if not live.waiting and not live.running:
        return tr("idle")
    limit = tr(" of {queue_limit}", queue_limit=live.queue_limit) if live.queue_limit else ""
    return tr("{running} running · {waiting}{limit} waiting", running=live.running, waiting=live.waiting, limit=limit)


def _fell_back(model: ModelConfig, live: ModelSnapshot) -> bool:
    return model.device.startswith("gpu") and not live.offloaded_layers
