"""A conversation that grows at its end without flicker. Qt main thread; shows turns, sends nothing.

New text is inserted at the end of one document, so nothing above it is laid out or painted again. The view follows
the end only while the reader is there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QEvent
from PySide6.QtGui import QFont, QTextBlockFormat, QTextCharFormat, QTextCursor
from PySide6.QtWidgets import QTextEdit

from laya_desktop.gui import theme
from laya_desktop.gui.i18n import QT_TR_NOOP, tr

_NAMES = {"user": QT_TR_NOOP("You"), "assistant": QT_TR_NOOP("Answer")}
_ROLES = {"user": "accent_text", "assistant": "calm", "note": "secondary", "error": "critical"}


@dataclass(slots=True)
class Turn:
    """One paragraph of the conversation."""

    kind: str
    """``user``, ``assistant``, ``note`` (a quiet line) or ``error``."""
    text: str


class Transcript(QTextEdit):
    """Read-only turns, top to bottom."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []  # before Qt's constructor: it may send a palette change
        super().__init__()
        self.setReadOnly(True)
        self.setUndoRedoEnabled(False)
        self.setAccessibleName(tr("Conversation"))
        self.setProperty("role", "transcript")
        self.document().setDocumentMargin(theme.SPACE_3)

    def add(self, kind: str, text: str) -> None:
        """Begin a turn."""
        self.turns.append(Turn(kind, text))
        self._at_end(lambda cursor: self._write(cursor, self.turns[-1]))

    def extend(self, text: str) -> None:
        """More text of the last turn."""
        self.turns[-1].text += text
        self._at_end(lambda cursor: cursor.insertText(text))

    def clear_turns(self) -> None:
        """Forget the conversation."""
        self.turns.clear()
        self.clear()

    def _at_end(self, write: Callable[[QTextCursor], object]) -> None:
        bar = self.verticalScrollBar()
        follows = bar.value() >= bar.maximum() - 4
        cursor = QTextCursor(self.document())
        cursor.movePosition(QTextCursor.MoveOperation.End)
        write(cursor)
        if follows:
            bar.setValue(bar.maximum())

    def _write(self, cursor: QTextCursor, turn: Turn) -> None:
        quiet = turn.kind in ("note", "error")
        name = tr(_NAMES[turn.kind]) if turn.kind in _NAMES else None
        for i, text in enumerate((name, turn.text)):
            if text is None:
                continue
            block = QTextBlockFormat()
            block.setTopMargin(theme.SPACE_1 if quiet or i else theme.SPACE_3)
            block.setLineHeight(118, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)
            if cursor.atStart():
                cursor.setBlockFormat(block)
            else:
                cursor.insertBlock(block)
            form = QTextCharFormat()
            form.setForeground(theme.color(_ROLES[turn.kind] if quiet or not i else "text"))
            size = theme.FONT_SECONDARY if quiet or not i else theme.FONT_BODY
            font = theme.ui_font(size)
            font.setWeight(QFont.Weight.DemiBold if not i and name else QFont.Weight.Normal)
            form.setFont(font)
            cursor.setCharFormat(form)
            cursor.insertText(text, form)

    def changeEvent(self, event: QEvent) -> None:
        """Write the turns again in the new theme's colours."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and self.turns:
            place = self.verticalScrollBar().value()
            self.clear()
            cursor = QTextCursor(self.document())
            for turn in self.turns:
                self._write(cursor, turn)
            self.verticalScrollBar().setValue(place)
