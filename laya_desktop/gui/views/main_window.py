"""The window: header, pages, status bar, banners, and closing. Qt main thread.

It composes pages that it is given and passes snapshots on to what is visible: its own bars and the page that is shown.
A page that wants snapshots has a method ``set_snapshot(NodeSnapshot)``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, runtime_checkable

from PySide6.QtCore import QByteArray, QSettings, Qt, Signal
from PySide6.QtGui import QAction, QCloseEvent, QKeySequence
from PySide6.QtWidgets import QHBoxLayout, QMainWindow, QStackedWidget, QVBoxLayout, QWidget

from laya_desktop import paths
from laya_desktop.errors import LayaError
from laya_desktop.gui import theme
from laya_desktop.gui.actions import Actions
from laya_desktop.gui.bridge import NodeBridge
from laya_desktop.gui.messages import Dialogs, Message, QtDialogs, message_for, message_for_error, settled_by
from laya_desktop.gui.qtmodels.history import History
from laya_desktop.gui.views import icons
from laya_desktop.gui.views.banner import BannerArea
from laya_desktop.gui.views.header import Header, align_below, title_of
from laya_desktop.gui.views.navigation import Navigation
from laya_desktop.gui.views.review import ReviewPanel
from laya_desktop.gui.views.status_bar import StatusBar
from laya_desktop.state.events import Event
from laya_desktop.state.snapshot import NodeSnapshot

DEFAULT_SIZE, LEAST_SIZE = (1280, 800), (1000, 620)


def window_settings() -> QSettings:
    """What the window remembers between runs: geometry, page, appearance; a file in the state folder."""
    return QSettings(str(paths.state_dir() / "window.ini"), QSettings.Format.IniFormat)


@runtime_checkable
class Page(Protocol):
    """A page that shows snapshots; called while it is the visible one, and when it becomes that."""

    def set_snapshot(self, snapshot: NodeSnapshot) -> None:
        """Show a snapshot."""
        ...


class MainWindow(QMainWindow):
    """The whole window.

    Args:
        bridge: the node; the caller starts and stops it.
        pages: page widgets by the name that the navigation shows, in order.
        history: fed here with every snapshot, whichever page is visible; None where nothing is plotted.
        dialogs: questions to the user; None: the real ones.
        settings: where geometry is kept; None: ``window_settings()``.

    Attributes:
        keep_open: asked before closing; True hides the window and leaves the rest as it is.
    """

    closed = Signal()
    """The window was closed for good."""

    def __init__(
        self,
        bridge: NodeBridge,
        pages: Mapping[str, QWidget],
        history: History | None = None,
        dialogs: Dialogs | None = None,
        settings: QSettings | None = None,
    ) -> None:
        super().__init__()
        self._bridge, self._history = bridge, history
        self._dialogs: Dialogs = dialogs or QtDialogs()
        self._settings = settings or window_settings()
        self._closing = self._quitting = False
        self.keep_open: Callable[[], bool] = lambda: False
        self.setWindowIcon(icons.app_icon())
        self.actions_ = Actions(bridge, self._dialogs, self)
        self.header = Header(self.actions_)
        self.navigation = Navigation(list(pages))
        self.status = StatusBar()
        self.banners = BannerArea()
        self.pages = dict(pages)
        self._build()
        self.review = ReviewPanel(bridge, self.actions_, self)
        self._connect()
        self._restore()
        self._on_snapshot(bridge.snapshot)

    def _build(self) -> None:
        self.stack = QStackedWidget()
        self.stack.setObjectName("pages")
        for page in self.pages.values():
            self.stack.addWidget(page)
        right = QVBoxLayout()
        right.setSpacing(0)
        right.addWidget(self.banners)
        right.addWidget(self.stack, 1)
        middle = QHBoxLayout()
        middle.setSpacing(0)
        middle.addWidget(self.navigation)
        middle.addLayout(right, 1)
        root = QWidget()
        whole = QVBoxLayout(root)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.setSpacing(0)
        whole.addWidget(self.header)
        whole.addLayout(middle, 1)
        whole.addWidget(self.status)
        self.setCentralWidget(root)
        for i, name in enumerate(list(self.pages)[:9]):
            action = QAction(name, self)
            action.setShortcut(QKeySequence(f"Ctrl+{i + 1}"))
            action.triggered.connect(lambda _checked=False, n=name: self.show_page(n))
            self.addAction(action)

    def _connect(self) -> None:
        self.navigation.page_chosen.connect(self.show_page)
        self.header.review_wanted.connect(self._toggle_review)
        self.banners.chosen.connect(self.actions_.run)
        self.actions_.message.connect(self.banners.show_message)
        self.actions_.page_wanted.connect(self.show_page)
        self.actions_.quit_wanted.connect(self.quit)
        self._bridge.snapshot_changed.connect(self._on_snapshot)
        self._bridge.event_received.connect(self._on_event)
        self._bridge.command_failed.connect(self._on_command_failed)

    def _restore(self) -> None:
        self.setMinimumSize(*LEAST_SIZE)
        self.resize(*DEFAULT_SIZE)
        geometry = self._settings.value("geometry")
        if isinstance(geometry, QByteArray):
            self.restoreGeometry(geometry)
        page = self._settings.value("page")
        self.show_page(page if isinstance(page, str) and page in self.pages else next(iter(self.pages)))

    @property
    def page(self) -> str:
        """Name of the page that is shown."""
        return list(self.pages)[self.stack.currentIndex()]

    def show_page(self, name: str) -> None:
        """Go to a page; an unknown name is ignored."""
        if name in self.pages:
            self.navigation.show_page(name)
            self.stack.setCurrentWidget(self.pages[name])
            self._refresh_page(self._bridge.snapshot)

    def _refresh_page(self, snapshot: NodeSnapshot) -> None:
        page = self.stack.currentWidget()
        if isinstance(page, Page):
            page.set_snapshot(snapshot)

    def show_message(self, message: Message) -> None:
        """Show a banner."""
        self.banners.show_message(message)

    def _on_snapshot(self, snapshot: NodeSnapshot) -> None:
        if self._history is not None:
            self._history.feed(snapshot)
        self.header.update_snapshot(snapshot)
        self.status.update_snapshot(snapshot)
        self.review.set_status(snapshot.config_status)
        self.actions_.update(snapshot)
        self._refresh_page(snapshot)
        title = title_of(snapshot)
        if title != self.windowTitle():
            self.setWindowTitle(title)

    def _on_event(self, event: Event) -> None:
        settled = settled_by(event)
        if settled:
            self.banners.clear(settled)
        message = message_for(event)
        if message is not None:
            self.banners.show_message(message)

    def _on_command_failed(self, error: LayaError) -> None:
        self.banners.show_message(message_for_error(error))

    def _toggle_review(self) -> None:
        if self.review.isVisible():
            self.review.hide()
            return
        align_below(self.review, self.header.review)
        self.review.show()

    def raise_window(self) -> None:
        """Bring the window to the front, wherever it was."""
        self.setWindowState(self.windowState() & ~Qt.WindowState.WindowMinimized)
        self.show()
        self.raise_()
        self.activateWindow()

    def quit(self) -> None:
        """Close for good, whatever closing the window means otherwise; asks about unsaved changes."""
        if self.isHidden() and self._bridge.snapshot.config_status.unsaved:
            self.raise_window()
        self._quitting = True
        self.close()
        self._quitting = False

    def closeEvent(self, event: QCloseEvent) -> None:
        """Ask about unsaved changes; remember geometry and page."""
        if not self._quitting and not self._closing and self.keep_open():
            self.remember()
            self.hide()
            event.ignore()
            return
        unsaved = self._bridge.snapshot.config_status.unsaved
        if unsaved and not self._closing:
            answer = self._dialogs.ask_unsaved(self, unsaved)
            if answer == "save":
                self.actions_.save_now(self._close_now)
            if answer != "discard":
                event.ignore()
                return
        self.remember()
        event.accept()
        self.closed.emit()

    def remember(self) -> None:
        """Keep geometry and page for the next window."""
        self._settings.setValue("geometry", self.saveGeometry())
        self._settings.setValue("page", self.page)
        self._settings.sync()

    def _close_now(self) -> None:
        self._closing = True
        self.close()


def restore_scheme(settings: QSettings) -> theme.Scheme:
    """The appearance chosen last time; system where none or an unknown one is stored."""
    value = settings.value("appearance", theme.Scheme.SYSTEM.value)
    return theme.Scheme(str(value)) if value in set(theme.Scheme) else theme.Scheme.SYSTEM
