"""Live and recent requests as a Qt table. Qt main thread; shows what the node says and decides nothing."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from PySide6.QtCore import Qt

from laya_desktop.gui import format as fmt
from laya_desktop.gui.i18n import QT_TR_NOOP, tr
from laya_desktop.gui.qtmodels.request_rows import PHASES, clock
from laya_desktop.gui.qtmodels.row_diff import TONE_ROLE, RowTableModel
from laya_desktop.state.enums import Phase
from laya_desktop.state.snapshot import RequestSnapshot

_Role = Qt.ItemDataRole
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter


class RequestColumn(IntEnum):
    """Columns from left to right."""

    TIME = 0
    ROUTE = 1
    TARGET = 2
    PHASE = 3
    PLACE = 4
    PROMPT = 5
    ANSWER = 6
    TTFT = 7
    RATE = 8
    DURATION = 9
    STATUS = 10
    ERROR = 11


_NUMBERS = frozenset(range(RequestColumn.PLACE, RequestColumn.ERROR))
_HEADER_TIPS = {
    RequestColumn.PLACE: QT_TR_NOOP("Place in the queue; 1 is next."),
    RequestColumn.PROMPT: QT_TR_NOOP("Tokens of the prompt."),
    RequestColumn.ANSWER: QT_TR_NOOP("Tokens of the answer so far."),
    RequestColumn.TTFT: QT_TR_NOOP("Time to first token: from receipt, queue included."),
    RequestColumn.RATE: QT_TR_NOOP("Tokens per second while decoding."),
    RequestColumn.STATUS: QT_TR_NOOP("HTTP status of the reply."),
}


class RequestTableModel(RowTableModel[RequestSnapshot]):
    """One row per request: live ones first, then the most recent."""

    headers = (
        QT_TR_NOOP("Time"),
        QT_TR_NOOP("Route"),
        QT_TR_NOOP("Target"),
        QT_TR_NOOP("Phase"),
        QT_TR_NOOP("Place"),
        QT_TR_NOOP("Prompt"),
        QT_TR_NOOP("Answer"),
        "TTFT",
        "tokens/s",
        QT_TR_NOOP("Duration"),
        QT_TR_NOOP("Status"),
        QT_TR_NOOP("Error"),
    )

    def key_of(self, row: RequestSnapshot) -> str:
        """Requests have unique ids."""
        return row.request_id

    def cell(self, row: RequestSnapshot, column: int, role: int) -> Any:
        """One cell."""
        if role == _Role.DisplayRole:
            return _text(row, column)
        if role == TONE_ROLE:
            return _tone(row, column)
        if role == _Role.TextAlignmentRole:
            return _RIGHT if column in _NUMBERS else _LEFT
        if role == _Role.ToolTipRole and column == RequestColumn.ERROR:
            return row.error
        if role == _Role.AccessibleTextRole and column == RequestColumn.PHASE:
            return tr(PHASES[row.phase][1])
        return None

    def header_cell(self, section: int, role: int) -> Any:
        """Numbers stand right, titles with them; short titles are explained."""
        if role == _Role.TextAlignmentRole:
            return _RIGHT if section in _NUMBERS else _LEFT
        return tr(_HEADER_TIPS.get(RequestColumn(section), "")) or None if role == _Role.ToolTipRole else None


def _text(row: RequestSnapshot, column: int) -> str | None:
    match column:
        case RequestColumn.TIME:
            return clock(row.received_unix_s)
        case RequestColumn.ROUTE:
            return row.route or "–"
        case RequestColumn.TARGET:
            return row.target or "–"
        case RequestColumn.PHASE:
            symbol, word, _ = PHASES[row.phase]
            word = tr(word)
            return f"{symbol} {word}"
        case RequestColumn.PLACE:
            return str(row.queue_place) if row.queue_place is not None else ""
        case RequestColumn.PROMPT:
            return fmt.count(row.prompt_tokens)
        case RequestColumn.ANSWER:
            return fmt.count(row.completion_tokens)
    return _measured(row, column)


def _measured(row: RequestSnapshot, column: int) -> str | None:
    match column:
        case RequestColumn.TTFT:
            return fmt.seconds(row.ttft_s)
        case RequestColumn.RATE:
            return fmt.rate(row.decode_tokens_per_s, "")
        case RequestColumn.DURATION:
            return fmt.seconds(row.duration_s)
        case RequestColumn.STATUS:
            return str(row.status) if row.status is not None else "–"
        case RequestColumn.ERROR:
            return row.error or ""
    return None


def _tone(row: RequestSnapshot, column: int) -> str | None:
    if column == RequestColumn.PHASE:
        return PHASES[row.phase][2]
    if column in (RequestColumn.ERROR, RequestColumn.STATUS) and row.phase is Phase.FAILED:
        return "critical"
    return "secondary" if column in (RequestColumn.TIME, RequestColumn.ERROR) else None
