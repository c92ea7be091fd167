"""The guard on the Overview: what it sees, what it did, and a way to take that back. Qt main thread.

Hidden while there is nothing to say. Undo is a request; a line goes when a snapshot no longer has it.
"""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QScrollArea, QSizePolicy, QVBoxLayout, QWidget

from laya_desktop.gui import theme
from laya_desktop.gui.i18n import tr
from laya_desktop.gui.qtmodels.guard_lines import ActionLine, AlertLine, GuardLines
from laya_desktop.gui.views.widgets import (
    Card,
    ElidedLabel,
    button,
    column,
    divider,
    label,
    row,
    scrolled,
    set_property,
)
from laya_desktop.state.enums import Level

_HISTORY_PX, _ALERT_PX, _ACTION_PX = 150, 20, 32
_WHEN_PX, _LEVEL_PX = 150, 76


class ActionRow(QWidget):
    """One action with its button."""

    def __init__(self, line: ActionLine) -> None:
        super().__init__()
        self.text = ElidedLabel(f"{line.text} · {line.reason}" if line.reason else line.text)
        self.undo = button(line.undo)
        self.undo.setAccessibleName(f"{line.undo}: {line.text}")
        layout = row(self.text, self.undo)
        layout.setStretch(0, 1)
        self.setLayout(layout)
        self.setFixedHeight(_ACTION_PX)


class AlertRow(QWidget):
    """One alert: when, how bad, what, and what was done."""

    def __init__(self, line: AlertLine) -> None:
        super().__init__()
        when, level = label(line.when, "secondary"), label(f"{theme.level_symbol(line.level)} {line.level}".strip())
        when.setFixedWidth(_WHEN_PX)
        level.setFixedWidth(_LEVEL_PX)
        set_property(level, "tone", theme.level_role(line.level))
        self.text, self.done = ElidedLabel(line.text), ElidedLabel(line.done, "secondary")
        layout = row(when, level, self.text, self.done)
        layout.setStretch(2, 1)
        layout.setStretch(3, 1)
        self.setLayout(layout)


class GuardPanel(Card):
    """Shows ``GuardLines``."""

    undo_clicked = Signal(str)
    """The id of an action."""

    def __init__(self) -> None:
        super().__init__(padding=10, spacing=6)
        self.lines: GuardLines | None = None
        self.setAccessibleName(tr("Guard"))
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.text = ElidedLabel("")
        self.toggle = button(tr("Alerts"), "ghost", on_click=self._toggle)
        head = row(label(tr("Guard"), "secondary"), self.text, self.toggle)
        head.setStretch(1, 1)
        self._actions = column(spacing=4)
        self._alerts = column(spacing=2)
        self.history = self._make_history(self._alerts)
        self._rule = divider()
        self.body.addLayout(head)
        self.body.addLayout(self._actions)
        self.body.addWidget(self._rule)
        self.body.addWidget(self.history)
        self._show_history(False)
        self.hide()

    def set_lines(self, lines: GuardLines) -> None:
        """Show new values; equal ones cost nothing."""
        before, self.lines = self.lines, lines
        if lines == before:
            return
        self.setVisible(not lines.empty)
        symbol = theme.level_symbol(lines.level)
        self.text.set_text(f"{symbol} {lines.text}".strip())
        set_property(self.text, "tone", "" if lines.level is Level.CALM else theme.level_role(lines.level))
        self.toggle.setVisible(bool(lines.alerts))
        if before is None or before.actions != lines.actions:
            _refill(self._actions, [self._action_row(line) for line in lines.actions])
        if before is None or before.alerts != lines.alerts:
            _refill(self._alerts, [AlertRow(line) for line in lines.alerts])
            self.history.setFixedHeight(min(_HISTORY_PX, _ALERT_PX * len(lines.alerts) + theme.SPACE_2))

    def action_rows(self) -> list[ActionRow]:
        """Those on show, newest first."""
        return [w for w in _widgets(self._actions) if isinstance(w, ActionRow)]

    def alert_rows(self) -> list[AlertRow]:
        """Those in the list, the present ones first."""
        return [w for w in _widgets(self._alerts) if isinstance(w, AlertRow)]

    def _action_row(self, line: ActionLine) -> ActionRow:
        shown = ActionRow(line)
        shown.undo.clicked.connect(partial(self._on_undo, line.action_id))
        return shown

    def _on_undo(self, action_id: str, _checked: bool = False) -> None:
        self.undo_clicked.emit(action_id)

    def _make_history(self, rows: QVBoxLayout) -> QScrollArea:
        content = QWidget()
        outer = column(spacing=0)
        outer.addLayout(rows)
        outer.addStretch(1)
        content.setLayout(outer)
        area = scrolled(content)
        area.setAccessibleName(tr("Alerts and what was done about them"))
        return area

    def _toggle(self) -> None:
        self._show_history(self.history.isHidden())

    def _show_history(self, shown: bool) -> None:
        self.history.setVisible(shown)
        self._rule.setVisible(shown)
        self.toggle.setText(tr("Hide alerts") if shown else tr("Alerts"))


def _widgets(layout: QVBoxLayout) -> list[QWidget]:
    items = [layout.itemAt(i) for i in range(layout.count())]
    return [w for item in items if item is not None and (w := item.widget()) is not None]


def _refill(layout: QVBoxLayout, rows: list[QWidget]) -> None:
    for old in _widgets(layout):
        layout.removeWidget(old)
        old.hide()
        old.deleteLater()
    for new in rows:
        layout.addWidget(new)
