"""What the Requests page says of a request: filters and details in words. Pure; imports no Qt."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from laya_desktop.gui import format as fmt
from laya_desktop.gui.i18n import QT_TR_NOOP, tr
from laya_desktop.state.enums import Phase

if TYPE_CHECKING:
    from collections.abc import Iterable

    from laya_desktop.state.snapshot import RequestSnapshot

FILTER_NAMES = {"all": QT_TR_NOOP("All"), "live": QT_TR_NOOP("Live"), "failed": QT_TR_NOOP("Failed")}
FILTERS = tuple(FILTER_NAMES)

DETAILS = (
    QT_TR_NOOP("Received"), QT_TR_NOOP("Route"), QT_TR_NOOP("Priority"), QT_TR_NOOP("Reply"),
    QT_TR_NOOP("Routing"), QT_TR_NOOP("Queue"), QT_TR_NOOP("First token"), QT_TR_NOOP("Duration"),
    QT_TR_NOOP("Prompt"), QT_TR_NOOP("Answer"), QT_TR_NOOP("Speed"), QT_TR_NOOP("Finish"),
)  # fmt: skip
"""Names of the details, in reading order."""

PHASES = {
    Phase.QUEUED: ("◷", QT_TR_NOOP("queued"), "watch"),
    Phase.PREFILL: ("▸", QT_TR_NOOP("prefill"), "accent"),
    Phase.DECODE: ("▸", QT_TR_NOOP("decoding"), "accent"),
    Phase.PROXY: ("↗", QT_TR_NOOP("upstream"), "accent"),
    Phase.DONE: ("✓", QT_TR_NOOP("done"), "calm"),
    Phase.CANCELLED: ("○", QT_TR_NOOP("cancelled"), "secondary"),
    Phase.FAILED: ("✕", QT_TR_NOOP("failed"), "critical"),
}
"""Symbol, word and colour role of each phase; the word alone says it."""


def shown(requests: Iterable[RequestSnapshot], kind: str, text: str = "") -> list[RequestSnapshot]:
    """The requests of a filter (``all``, ``live``, ``failed``) that mention every word of ``text``."""
    words = text.lower().split()
    return [r for r in requests if _is_kind(r, kind) and all(w in _words(r) for w in words)]


def counts(requests: Iterable[RequestSnapshot]) -> dict[str, int]:
    """How many each filter shows."""
    found = list(requests)
    return {kind: sum(_is_kind(r, kind) for r in found) for kind in FILTERS}


def clock(unix_s: float) -> str:
    """Local time of day: ``14:03:27``."""
    return time.strftime("%H:%M:%S", time.localtime(unix_s))


def details(request: RequestSnapshot) -> list[tuple[str, str]]:
    """Every timing and count that is known, as (name, value) for ``DETAILS``; unknown shows as "–"."""
    cached = (
        tr(" ({cached_tokens} cached)", cached_tokens=fmt.count(request.cached_tokens)) if request.cached_tokens else ""
    )
    reply = [str(request.status)] if request.status is not None else []
    reply += [tr("streamed")] if request.stream else []
    values = (
        clock(request.received_unix_s),
        f"{request.route or '–'} → {request.target or '–'}",
        str(request.priority),
        ", ".join(reply) or fmt.NONE,
        fmt.micros(request.routing_us),
        fmt.seconds(request.queue_s),
        fmt.seconds(request.ttft_s),
        fmt.seconds(request.duration_s),
        _tokens(request.prompt_tokens) + cached,
        _tokens(request.completion_tokens),
        fmt.rate(request.decode_tokens_per_s),
        request.finish_reason or "–",
    )
    return list(zip(map(tr, DETAILS), values, strict=True))


def _tokens(number: int | None) -> str:
    return fmt.NONE if number is None else fmt.counted(number, "token")


def empty_words(kind: str, text: str, total: int) -> tuple[str, str]:
    """Title and text where a filter leaves nothing to show."""
    if text.strip():
        return tr("Nothing matches"), tr(
            "None of {counted} mentions “{strip}”.", counted=fmt.counted(total, "request"), strip=text.strip()
        )
    if kind == "live":
        return tr("Nothing is running"), tr("Requests appear here while they wait and while they are answered.")
    if kind == "failed":
        return tr("No failed requests"), tr("Requests that end in an error appear here, with the reason.")
    return tr("No requests yet"), tr("Send one to the address above, or try the Playground.")


def _is_kind(request: RequestSnapshot, kind: str) -> bool:
    if kind == "live":
        return not request.phase.finished
    return request.phase is Phase.FAILED if kind == "failed" else True


def _words(request: RequestSnapshot) -> str:
    parts = (request.request_id, request.route, request.target, request.method, request.path, request.phase)
    return " ".join(str(p) for p in (*parts, request.status, request.error) if p is not None).lower()
