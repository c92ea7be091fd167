"""A unified diff as coloured monospace lines. Qt main thread; read-only, knows no file and no node."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QSize
from PySide6.QtGui import QFontMetrics, QTextBlockFormat, QTextCharFormat, QTextCursor
from PySide6.QtWidgets import QPlainTextEdit

from laya_desktop.gui import theme
from laya_desktop.gui.i18n import tr

MAX_LINES = 16
_TINT = 0.14
_ROLES = {"+": "calm", "-": "critical", "@": "secondary"}


def role_of(line: str) -> str | None:
    """The colour of a line by its first character; None for context."""
    return None if line.startswith(("+++", "---")) else _ROLES.get(line[:1])


class DiffView(QPlainTextEdit):
    """Added lines and removed lines in their colours, on a tint of them; as tall as its lines up to a bound."""

    def __init__(self) -> None:
        super().__init__()
        self._text = ""
        self.setProperty("role", "well")
        self.setAccessibleName(tr("What saving would change in the file"))
        self.setReadOnly(True)
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setTabChangesFocus(True)
        self.document().setDocumentMargin(4)
        self.set_diff("")

    @property
    def diff(self) -> str:
        """What is shown."""
        return self._text

    def set_diff(self, text: str) -> None:
        """Show a diff; its two lines of file names are left out, because the panel names the file."""
        self._text = text
        lines = [line for line in text.splitlines() if not line.startswith(("+++", "---"))]
        self.clear()
        cursor = QTextCursor(self.document())
        for i, line in enumerate(lines):
            if i:
                cursor.insertBlock()
            self._style(cursor, role_of(line))
            cursor.insertText(line)
        self.moveCursor(QTextCursor.MoveOperation.Start)
        shown = min(max(len(lines), 2), MAX_LINES)
        self.setFixedHeight(QFontMetrics(theme.mono_font()).lineSpacing() * shown + 22)

    @staticmethod
    def _style(cursor: QTextCursor, role: str | None) -> None:
        text, block = QTextCharFormat(), QTextBlockFormat()
        if role is not None:
            text.setForeground(theme.color(role))
            if role != "secondary":
                block.setBackground(theme.color(role, _TINT))
        cursor.setBlockFormat(block)
        cursor.setCharFormat(text)

    def minimumSizeHint(self) -> QSize:
        """Narrow is fine: it scrolls."""
        return QSize(80, 40)

    def changeEvent(self, event: QEvent) -> None:
        """Take the new theme's colours."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and hasattr(self, "_text"):
            self.set_diff(self._text)
