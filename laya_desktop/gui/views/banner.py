"""Messages above the page: what happened, and the ways out as buttons. Qt main thread; never modal."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QEvent, QTimer, Signal
from PySide6.QtWidgets import QFrame, QLabel, QSizePolicy, QVBoxLayout, QWidget

from laya_desktop.gui import theme
from laya_desktop.gui.i18n import tr
from laya_desktop.gui.messages import Message
from laya_desktop.gui.views import icons
from laya_desktop.gui.views.widgets import button, label, row

MOST_SHOWN = 3
INFO_MS = 5000
_ICONS = {"info": ("info", "accent"), "warning": ("warning", "warn"), "error": ("error", "critical")}


class Banner(QFrame):
    """One message."""

    chosen = Signal(str)
    """The command of a button."""
    dismissed = Signal()

    def __init__(self, message: Message) -> None:
        super().__init__()
        self.message = message
        self.setProperty("role", "banner")
        self.setProperty("severity", message.severity)
        self.setAccessibleName(f"{message.severity}: {message.text}")
        self._mark = QLabel()
        self._text = label(message.text, wrap=True)
        self._text.setTextInteractionFlags(self._text.textInteractionFlags().TextSelectableByMouse)
        self._text.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self.buttons = [
            button(choice.text, on_click=partial(self._choose, choice.command)) for choice in message.choices
        ]
        close = button("", "ghost", icon="close", on_click=self.dismissed.emit)
        close.setAccessibleName(tr("Dismiss"))
        close.setToolTip(tr("Dismiss"))
        close.setFixedWidth(30)
        self.close_button = close
        layout = row(self._mark, self._text, *self.buttons, close)
        layout.setContentsMargins(theme.SPACE_3, 6, 6, 6)
        layout.setStretch(1, 1)
        self.setLayout(layout)
        self._paint_icon()
        if message.severity == "info" and not message.choices:
            timer = QTimer(self)
            timer.setSingleShot(True)
            timer.timeout.connect(self.dismissed)
            timer.start(INFO_MS)

    def _choose(self, command: str) -> None:
        self.chosen.emit(command)
        self.dismissed.emit()

    def changeEvent(self, event: QEvent) -> None:
        """Draw the icon in the new theme's colour."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and hasattr(self, "close_button"):
            self._paint_icon()

    def _paint_icon(self) -> None:
        self._mark.setPixmap(icons.pixmap(*_ICONS[self.message.severity], size_px=18))


class BannerArea(QWidget):
    """The newest messages, at most three; a message replaces the one with the same identity."""

    chosen = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.banners: list[Banner] = []
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(theme.SPACE_4, theme.SPACE_3, theme.SPACE_4, 0)
        self._layout.setSpacing(theme.SPACE_2)
        self.hide()

    def show_message(self, message: Message) -> None:
        """Add or replace a message, newest on top."""
        self.clear(message.identity)
        banner = Banner(message)
        banner.chosen.connect(self.chosen)
        banner.dismissed.connect(lambda: self._remove(banner))
        self.banners.insert(0, banner)
        self._layout.insertWidget(0, banner)
        while len(self.banners) > MOST_SHOWN:
            self._remove(self.banners[-1])
        self.show()

    def clear(self, identity: str) -> None:
        """Take away the message of that identity, if it is shown."""
        for banner in [b for b in self.banners if b.message.identity == identity]:
            self._remove(banner)

    def _remove(self, banner: Banner) -> None:
        if banner in self.banners:
            self.banners.remove(banner)
            self._layout.removeWidget(banner)
            banner.hide()
            banner.deleteLater()
        self.setVisible(bool(self.banners))
