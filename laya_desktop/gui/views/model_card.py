"""One model's card: state, slots, progress, and the buttons that ask for a load. Qt main thread.

Updated in place: a snapshot changes only the labels whose text differs, so nothing flickers and focus stays.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFocusEvent, QFontMetrics, QKeyEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QLabel, QPushButton, QSizePolicy, QWidget

from laya_desktop.gui import theme
from laya_desktop.gui.i18n import tr
from laya_desktop.gui.qtmodels.model_cards import CardValues, SlotCell
from laya_desktop.gui.views.inputs import Preview
from laya_desktop.gui.views.widgets import (
    BarPart,
    Card,
    CopyButton,
    ElidedLabel,
    HBar,
    Pill,
    button,
    label,
    row,
    set_property,
)
from laya_desktop.state.enums import ModelState

_SLOT_HEIGHT, _SLOT_GAP, _SLOTS_SHOWN = 20, 6, 8


class SlotStrip(QWidget):
    """A model's decoding lanes side by side, each with what it is doing in words."""

    def __init__(self) -> None:
        super().__init__()
        self._cells: tuple[SlotCell, ...] = ()
        self.setFixedHeight(_SLOT_HEIGHT)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def set_cells(self, cells: tuple[SlotCell, ...]) -> None:
        """Show these lanes; the last place says how many more there are."""
        if cells == self._cells:
            return
        self._cells = cells
        text = ", ".join(c.text for c in cells)
        self.setAccessibleName(tr("Slots: {words}", words=text))
        self.setToolTip("\n".join(c.text for c in cells))
        self.update()

    def sizeHint(self) -> QSize:
        """One line."""
        return QSize(200, _SLOT_HEIGHT)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw the lanes."""
        cells = list(self._cells)
        if len(cells) > _SLOTS_SHOWN:
            busy = sum(c.kind != "free" for c in cells[_SLOTS_SHOWN - 1 :])
            rest = len(cells) - _SLOTS_SHOWN + 1
            cells[_SLOTS_SHOWN - 1 :] = [
                SlotCell(tr("+{rest}, {busy} busy", rest=rest, busy=busy), "prefill" if busy else "free")
            ]
        if not cells:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(theme.ui_font(theme.FONT_SMALL))
        metrics = QFontMetrics(painter.font())
        width = (self.width() - _SLOT_GAP * (len(cells) - 1)) / len(cells)
        for i, cell in enumerate(cells):
            area = QRectF(i * (width + _SLOT_GAP), 0, width, _SLOT_HEIGHT).adjusted(0.5, 0.5, -0.5, -0.5)
            _paint_slot(painter, area, cell, metrics)


def _paint_slot(painter: QPainter, area: QRectF, cell: SlotCell, metrics: QFontMetrics) -> None:
    fill, text = {"decode": ("tint", "accent"), "prefill": ("track", "text")}.get(cell.kind, ("panel", "secondary"))
    free = cell.kind == "free"
    painter.setPen(QPen(theme.color("line"), 1, Qt.PenStyle.DashLine) if free else Qt.PenStyle.NoPen)
    painter.setBrush(theme.color(fill))
    painter.drawRoundedRect(area, 4, 4)
    painter.setPen(theme.color(text))
    inner = area.adjusted(6, 0, -4, 0)
    shown = metrics.elidedText(cell.text, Qt.TextElideMode.ElideRight, int(inner.width()))
    painter.drawText(inner, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, shown)


class ModelCard(Card):
    """Shows ``CardValues``; every button is a request that carries the model's name."""

    load_clicked = Signal(str, str)
    """Model and device: ``cpu`` or ``gpu``; empty: the configured one."""
    load_anyway_clicked = Signal(str)
    """The model, although the guard refused it."""
    unload_clicked = Signal(str)
    edit_clicked = Signal(str)
    chat_clicked = Signal(str)
    clear_cache_clicked = Signal(str)

    def __init__(self, name: str, curl: Callable[[str], str]) -> None:
        super().__init__(spacing=theme.SPACE_2)
        self.name = name
        self.values: CardValues | None = None
        self._log_open = False
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(name)
        self.title = ElidedLabel(name, "title")
        self.title.setFont(theme.ui_font(theme.FONT_BODY + 1, bold=True))
        self.pill = Pill()
        self.meta = label(role="secondary", wrap=True)
        self.note = label(role="secondary", wrap=True)
        self.error = label(role="secondary", wrap=True)
        self.progress = HBar()
        self.strip = SlotStrip()
        self.queue = label(role="secondary")
        self.reload_note = label(role="secondary", wrap=True)
        self.cache = ElidedLabel("", "secondary")
        self.gpu_note = ElidedLabel("", "secondary")
        self.log = Preview(tr("Last lines of the worker's log"), max_lines=8)
        self._build_buttons(curl)
        self._build()

    def _build_buttons(self, curl: Callable[[str], str]) -> None:
        self.cpu_button = button(tr("Load on CPU"), "primary", on_click=lambda: self._load("cpu"))
        self.gpu_button = button(tr("Load on GPU"), on_click=lambda: self._load("gpu"))
        self.retry_button = button(tr("Retry"), "primary", on_click=lambda: self._load(""))
        self.anyway_button = button(
            tr("Load anyway"), "danger", on_click=lambda: self.load_anyway_clicked.emit(self.name)
        )
        self.anyway_button.setToolTip(tr("Once, although it may exhaust this machine's memory."))
        self.edit_button = button(tr("Edit"), on_click=lambda: self.edit_clicked.emit(self.name))
        self.log_button = button(tr("Log"), "ghost", on_click=self._toggle_log)
        self.unload_button = button(tr("Unload"), on_click=lambda: self.unload_clicked.emit(self.name))
        self.reload_button = button(tr("Reload"), "primary", on_click=lambda: self._load(""))
        self.chat_button = button(tr("Chat"), icon="playground", on_click=lambda: self.chat_clicked.emit(self.name))
        self.chat_button.setToolTip(tr("Chat with it in the Playground"))
        self.clear_button = button(tr("Clear"), "ghost", on_click=lambda: self.clear_cache_clicked.emit(self.name))
        self.clear_button.setToolTip(tr("Forget the answers that the cache keeps"))
        self.clear_button.setAccessibleName(tr("Clear the cache of {name}", name=self.name))
        self.curl_button = CopyButton(
            lambda: curl(self.name), tr("Copy curl"), tr("Copy a request to this model as curl")
        )

    def _build(self) -> None:
        head = row(spacing=theme.SPACE_3)
        head.addWidget(self.title, 1)
        head.addWidget(self.pill, 0, Qt.AlignmentFlag.AlignTop)
        buttons = row()
        for item in (
            self.retry_button, self.cpu_button, self.gpu_button, self.edit_button, self.reload_button,
            self.unload_button, self.chat_button, self.curl_button, self.log_button,
        ):  # fmt: skip
            buttons.addWidget(item)
        buttons.addWidget(self.gpu_note, 1)
        buttons.addStretch(0)
        buttons.addWidget(self.queue)
        self.body.setContentsMargins(15, 11, 15, 13)
        self.body.addLayout(head)
        refused = row(self.error, self.anyway_button)
        refused.setStretch(0, 1)
        self.body.addWidget(self.meta)
        self.body.addWidget(self.note)
        self.body.addLayout(refused)
        for line in (self.reload_note, self.progress, self.strip):
            self.body.addWidget(line)
        cached = row(self.cache, self.clear_button)
        cached.setStretch(0, 1)
        self.body.addLayout(cached)
        self.body.addSpacing(2)
        self.body.addLayout(buttons)
        self.body.addWidget(self.log)
        for hidden in (
            self.note,
            self.error,
            self.anyway_button,
            self.reload_note,
            self.progress,
            self.strip,
            self.log,
        ):
            hidden.hide()

    def set_values(self, values: CardValues) -> None:
        """Show new values; equal ones cost nothing."""
        if values == self.values:
            return
        self.values = values
        self.pill.set_state(values.pill, values.tone)
        _say(self.meta, values.meta)
        _say(self.note, values.note)
        set_property(self.note, "tone", values.note_tone)
        _say(self.error, values.error)
        _say(
            self.reload_note,
            tr("Takes effect at the next load: {reload}.", reload=values.reload) if values.reload else "",
        )
        self.setAccessibleDescription(f"{values.pill}. {values.meta}")
        self.progress.setVisible(values.state is ModelState.LOADING)
        self.progress.set_parts([BarPart(values.progress or 0.0, "watch", "loaded")])
        self.strip.setVisible(bool(values.slots))
        self.strip.set_cells(values.slots)
        self.queue.setText(values.queue)
        self.cache.set_text(values.cache)
        for item in (self.cache, self.clear_button):
            item.setVisible(bool(values.cache))
        self._show_buttons(values)
        self.log.set_text("\n".join(values.log_tail))
        self._show_log()

    def _show_buttons(self, values: CardValues) -> None:
        failed = values.state is ModelState.FAILED
        self.cpu_button.setVisible(values.can_load)
        self.gpu_button.setVisible(values.can_load)
        set_property(self.cpu_button, "role", "secondary" if failed else "primary")
        self.gpu_button.setEnabled(not values.gpu_reason)
        self.gpu_button.setToolTip(values.gpu_reason)
        self.gpu_note.setVisible(values.can_load and not failed)
        self.gpu_note.set_text(values.gpu_reason, values.gpu_reason_short)
        self.retry_button.setVisible(failed and not values.can_override)  # it would only be refused again
        self.anyway_button.setVisible(values.can_override)
        self.edit_button.setVisible(failed)
        self.log_button.setVisible(bool(values.log_tail))
        self.reload_button.setVisible(bool(values.reload))
        self.unload_button.setVisible(values.can_unload)
        self.unload_button.setText(tr("Cancel") if values.state is ModelState.LOADING else tr("Unload"))
        for item in (self.curl_button, self.chat_button):
            item.setVisible(values.state is ModelState.READY)

    def _toggle_log(self) -> None:
        self._log_open = not self._log_open
        self._show_log()

    def _show_log(self) -> None:
        there = self.values is not None and bool(self.values.log_tail)
        self.log.setVisible(there and self._log_open)
        self.log_button.setToolTip(tr("Hide the log") if self._log_open else tr("Show the last lines of the log"))

    def _load(self, device: str) -> None:
        self.load_clicked.emit(self.name, device)

    def buttons(self) -> list[QPushButton]:
        """The buttons on show, left to right."""
        return [b for b in self.findChildren(QPushButton) if b.isVisibleTo(self)]

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Tabbing to a card selects it."""
        super().focusInEvent(event)
        if event.reason() in (Qt.FocusReason.TabFocusReason, Qt.FocusReason.BacktabFocusReason):
            self.clicked.emit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter and Space select the card."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space):
            self.clicked.emit()
            return
        super().keyPressEvent(event)


def _say(line: QLabel, text: str) -> None:
    if text != line.text():
        line.setText(text)
    line.setVisible(bool(text))
