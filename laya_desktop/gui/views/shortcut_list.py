"""F1: which keys do what. Qt main thread."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QGridLayout, QLabel, QWidget

from laya_desktop.gui import theme
from laya_desktop.gui.i18n import QT_TR_NOOP, tr
from laya_desktop.gui.views.overlay import Overlay
from laya_desktop.gui.views.widgets import SectionTitle, button, column, label, row, scrolled

ON_PAGES = (
    ("Ctrl+N", QT_TR_NOOP("Add a route or a model on its page")),
    ("Alt+Up", QT_TR_NOOP("Move a route up in the file (Routes)")),
    ("Alt+Down", QT_TR_NOOP("Move a route down in the file (Routes)")),
    ("F5", QT_TR_NOOP("Read the model files again (Models)")),
    ("Esc", QT_TR_NOOP("Close what lies over the window")),
    ("Tab", QT_TR_NOOP("Next control")),
)
"""Keys that a page or a panel listens to itself."""
_WIDTH_PX, _MOST_PX = 760, 440


class ShortcutList(Overlay):
    """Two columns of keys.

    Args:
        parent: the window.
        shortcuts: (keys, what they do), asked each time it opens.
    """

    def __init__(self, parent: QWidget, shortcuts: Callable[[], list[tuple[str, str]]]) -> None:
        super().__init__(parent, _WIDTH_PX)
        self._ask = shortcuts
        self.setAccessibleName(tr("Shortcuts"))
        self.close_button = button("", "ghost", icon="close", on_click=self.hide)
        self.close_button.setAccessibleName(tr("Close"))
        self.close_button.setToolTip(tr("Close"))
        self._content = QWidget()
        self._grid = QGridLayout(self._content)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(theme.SPACE_4)
        self._grid.setVerticalSpacing(theme.SPACE_2)
        self._grid.setColumnStretch(1, 1)
        self._grid.setColumnStretch(3, 1)
        self._area = scrolled(self._content)
        self._area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        layout = column(spacing=theme.SPACE_3)
        layout.addLayout(row(SectionTitle(tr("Shortcuts")), None, self.close_button))
        layout.addWidget(self._area)
        layout.setContentsMargins(theme.SPACE_4, theme.SPACE_3, theme.SPACE_4, theme.SPACE_4)
        self.setLayout(layout)

    def open(self) -> None:
        """Show the shortcuts that are there now."""
        while (item := self._grid.takeAt(0)) is not None:
            if (old := item.widget()) is not None:
                old.deleteLater()
        lines = self._ask() + [(keys, tr(str(text))) for keys, text in ON_PAGES]
        half = (len(lines) + 1) // 2
        for i, (keys, text) in enumerate(lines):
            line, side = i % half, i // half * 2
            self._grid.addWidget(_keys(keys), line, side)
            self._grid.addWidget(label(text, wrap=True), line, side + 1)
        self._area.setFixedHeight(min(_MOST_PX, half * 30 + 8))
        super().open()


def _keys(keys: str) -> QLabel:
    result = label(QKeySequence(keys).toString(QKeySequence.SequenceFormat.NativeText), "mono")
    result.setAlignment(Qt.AlignmentFlag.AlignTrailing | Qt.AlignmentFlag.AlignVCenter)
    return result
