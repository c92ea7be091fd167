"""The list of pages on the left. Qt main thread; it knows names and icons, not pages."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QButtonGroup, QFrame, QPushButton, QVBoxLayout

from laya_desktop.gui import theme
from laya_desktop.gui.i18n import tr
from laya_desktop.gui.views import icons


class Navigation(QFrame):
    """One checkable button a page; arrow keys move between them.

    Args:
        names: pages in order; the icon of a page is the file of its lower-case name.
    """

    page_chosen = Signal(str)

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__()
        self.setObjectName("navigation")
        self.setAccessibleName(tr("Pages"))
        self.setFixedWidth(theme.NAVIGATION_WIDTH)
        self._group = QButtonGroup(self)
        self.buttons: dict[str, QPushButton] = {}
        layout = QVBoxLayout(self)
        layout.setContentsMargins(theme.SPACE_2, 10, theme.SPACE_2, theme.SPACE_2)
        layout.setSpacing(3)
        for i, name in enumerate(names):
            entry = QPushButton(f" {tr(name)}")
            entry.setProperty("role", "navigation")
            entry.setCheckable(True)
            entry.setIconSize(QSize(18, 18))
            entry.setCursor(Qt.CursorShape.PointingHandCursor)
            entry.setToolTip(f"Ctrl+{i + 1}")
            entry.setAccessibleName(tr(name))
            entry.clicked.connect(lambda _checked=False, n=name: self.page_chosen.emit(n))
            self._group.addButton(entry)
            self.buttons[name] = entry
            layout.addWidget(entry)
        layout.addStretch(1)
        self._paint_icons()

    def show_page(self, name: str) -> None:
        """Mark the page as the current one."""
        self.buttons[name].setChecked(True)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Up and down move the focus."""
        entries = list(self.buttons.values())
        focus = next((i for i, entry in enumerate(entries) if entry.hasFocus()), None)
        step = {Qt.Key.Key_Up.value: -1, Qt.Key.Key_Down.value: 1}.get(event.key())
        if focus is None or step is None:
            super().keyPressEvent(event)
        else:
            entries[(focus + step) % len(entries)].setFocus()

    def changeEvent(self, event: QEvent) -> None:
        """Draw the icons in the new theme's colours."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and hasattr(self, "buttons"):
            self._paint_icons()

    def _paint_icons(self) -> None:
        for name, entry in self.buttons.items():
            entry.setIcon(icons.icon(name.lower(), "secondary", "accent"))
