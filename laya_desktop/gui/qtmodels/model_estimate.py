"""What the estimate bar says: parts against what is free, and a verdict in words. Pure; imports no Qt."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from laya_desktop.gui import format as fmt
from laya_desktop.gui.i18n import QT_TR_NOOP, tr
from laya_desktop.state.enums import Verdict

if TYPE_CHECKING:
    from laya_desktop.gui.qtmodels.model_fields import ModelFields
    from laya_desktop.state.snapshot import MemoryEstimate, ModelFileInfo, Proposal

_VERDICTS = {
    Verdict.FITS: (QT_TR_NOOP("fits"), "calm"),
    Verdict.TIGHT: (QT_TR_NOOP("tight"), "warn"),
    Verdict.WILL_NOT_FIT: (QT_TR_NOOP("will not fit"), "critical"),
    Verdict.UNKNOWN: (QT_TR_NOOP("unknown"), "neutral"),
}
_DEVICES = {"cpu": "CPU", "gpu": "GPU"}


@dataclass(frozen=True, slots=True)
class EstimateWords:
    """Texts and shares of the bar. Shares are of the longer of "needed" and "free", 0.0 to 1.0.

    Shares are named by their untranslated keys. ``limit`` is where free memory ends when more is needed; None:
    everything fits in.
    """

    title: str
    verdict: str
    tone: str
    shares: tuple[tuple[str, float], ...] = ()
    limit: float | None = None
    caption: str = ""
    reason: str = ""
    offer: str = ""
    """Settings that would fit, e.g. "KV cache q8_0, context 2,048"; empty: there is no such offer."""


def no_file() -> EstimateWords:
    """There is nothing to estimate."""
    return EstimateWords(tr("Choose a file to see what it would take"), "", "neutral")


def unknown(reason: str = "") -> EstimateWords:
    """There is no estimate, or none yet."""
    return EstimateWords(tr("Would take"), tr("unknown"), "neutral", reason=reason)


def estimate_words(estimate: MemoryEstimate) -> EstimateWords:
    """An estimate as the bar shows it; what is unknown is left out, never zero."""
    parts = [
        (QT_TR_NOOP("weights"), estimate.weights_bytes),
        (QT_TR_NOOP("KV cache"), estimate.kv_cache_bytes),
        (QT_TR_NOOP("compute"), estimate.compute_bytes),
        (QT_TR_NOOP("worker"), estimate.other_bytes),
    ]
    known = [(name, size) for name, size in parts if size is not None]
    total = estimate.total_bytes if estimate.total_bytes is not None else sum(size for _, size in known)
    free = estimate.free_bytes
    device = estimate.device.lower().partition(":")[0]
    whole = max(total, free or 0)
    verdict, tone = _VERDICTS[estimate.verdict]
    sizes = [f"{tr(name)} {fmt.size(size)}" for name, size in known]
    if free is not None:
        sizes.append(tr("{free} free", free=fmt.size(free)))
    return EstimateWords(
        title=tr("Would take on the {device}", device=_DEVICES[device]) if device in _DEVICES else tr("Would take"),
        verdict=tr(verdict),
        tone=tone,
        shares=tuple((name, size / whole) for name, size in known) if whole else (),
        limit=free / whole if free is not None and whole and total > free else None,
        caption=" · ".join(sizes),
        reason=estimate.reason if estimate.verdict is not Verdict.FITS else "",
        offer=offer_words(estimate.proposal) if estimate.proposal is not None else "",
    )


def offer_words(proposal: Proposal) -> str:
    """Proposed settings by the names that the form gives them."""
    words = (
        tr("KV cache {kv_type}", kv_type=proposal.kv_type) if proposal.kv_type else "",
        tr("context {tokens}", tokens=fmt.count(proposal.max_seq_len)) if proposal.max_seq_len else "",
        tr("%n slot(s)", None, proposal.batch_size) if proposal.batch_size else "",
        tr("%n layer(s) on the GPU", None, proposal.gpu_layers) if proposal.gpu_layers else "",
    )
    return ", ".join(word for word in words if word)


def with_proposal(fields: ModelFields, proposal: Proposal) -> ModelFields:
    """The form's fields with the proposed settings filled in."""
    numbers = {key: getattr(proposal, key) for key in ("max_seq_len", "batch_size", "gpu_layers")}
    filled: dict[str, Any] = {key: str(value) for key, value in numbers.items() if value is not None}
    return replace(fields, kv_type=proposal.kv_type or fields.kv_type, **filled)


def file_words(info: ModelFileInfo, parameters: str) -> str:
    """A file's metadata in one line: ``llama 6.7B · Q4_K_M · 4.4 GB · trained for 4,096 tokens · chat template``."""
    kind = " ".join(p for p in (info.architecture, parameters) if p)
    context = (
        tr("trained for {context_length} tokens", context_length=fmt.count(info.context_length))
        if info.context_length
        else None
    )
    template = tr("chat template") if info.has_chat_template else tr("no chat template")
    return " · ".join(p for p in (kind, info.quantisation, fmt.size(info.size_bytes), context, template) if p)
