"""The first page: what the machine has left, where it is heading, and six live plots. Qt main thread.

The cards change with every snapshot while the page is visible; the plots are made after the page is first shown and
drawn at most four times a second, only while it is visible and not paused. The history is fed by the window.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QTimer
from PySide6.QtGui import QAction, QHideEvent, QShowEvent
from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QMenu, QSizePolicy, QVBoxLayout, QWidget

from laya_desktop.gui import theme
from laya_desktop.gui.bridge import NodeBridge
from laya_desktop.gui.i18n import QT_TR_NOOP, tr
from laya_desktop.gui.messages import Dialogs
from laya_desktop.gui.qtmodels.guard_lines import guard_lines
from laya_desktop.gui.qtmodels.history import History
from laya_desktop.gui.views import gauge_card
from laya_desktop.gui.views.gauge_card import GaugeCard
from laya_desktop.gui.views.guard_panel import GuardPanel
from laya_desktop.gui.views.widgets import button, label, row, scrolled
from laya_desktop.state.snapshot import NodeSnapshot

if TYPE_CHECKING:
    from laya_desktop.gui.views.plot_grid import PlotGrid

WINDOWS = ((QT_TR_NOOP("1 min"), 60.0), (QT_TR_NOOP("5 min"), 300.0), (QT_TR_NOOP("30 min"), 1800.0))
_DRAW_MS = 250


class OverviewPage(QWidget):
    """Cards and plots.

    Args:
        bridge: where snapshots come from.
        history: what the plots show; somebody else feeds it.
        dialogs: where to save exports to.
    """

    def __init__(self, bridge: NodeBridge, history: History, dialogs: Dialogs) -> None:
        super().__init__()
        self._bridge, self._history, self._dialogs = bridge, history, dialogs
        self.window_s = WINDOWS[0][1]
        self.plots: PlotGrid | None = None
        self._paused: NodeSnapshot | None = None
        self.cards = tuple(GaugeCard() for _ in range(4))
        content = QWidget()
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.addWidget(scrolled(content))  # a low window with alerts open: plots keep their height
        self._body = QVBoxLayout(content)
        self._body.setContentsMargins(*(theme.SPACE_4,) * 4)
        self._body.setSpacing(theme.SPACE_3)
        cards = row(*self.cards, spacing=theme.SPACE_3)
        for i in range(4):
            cards.setStretch(i, 1)
        self._body.addLayout(cards)
        self.guard = GuardPanel()
        self.guard.undo_clicked.connect(bridge.undo_guard_action)
        self._body.addWidget(self.guard)
        self._body.addLayout(self._toolbar())
        self._room = QWidget()
        self._room.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self._body.addWidget(self._room, 1)
        self._timer = QTimer(self)
        self._timer.setInterval(_DRAW_MS)
        self._timer.timeout.connect(self.draw)

    def _toolbar(self) -> QHBoxLayout:
        self.ranges = QButtonGroup(self)
        buttons = []
        for i, (text, _) in enumerate(WINDOWS):
            choice = button(tr(text), "segment")
            choice.setChecked(i == 0)
            self.ranges.addButton(choice, i)
            buttons.append(choice)
        self.ranges.idClicked.connect(self._on_range)
        self._state = label("", "secondary")
        self.pause = button(tr("Pause"), icon="pause", on_click=self._toggle_pause)
        self.export = button(tr("Export"), icon="export")
        self.export.setProperty("menu", True)
        menu = QMenu(self.export)
        self.export_png = QAction(tr("Picture of the plots (PNG)…"), menu)
        self.export_csv = QAction(tr("Values in this range (CSV)…"), menu)
        self.export_png.triggered.connect(lambda _checked=False: self._export_png())
        self.export_csv.triggered.connect(lambda _checked=False: self._export_csv())
        menu.addActions([self.export_png, self.export_csv])
        self.export.setMenu(menu)
        return row(*buttons, 4, self._state, None, self.pause, self.export, spacing=6)

    @property
    def paused(self) -> bool:
        """True while the plots stand still; the history goes on."""
        return self._paused is not None

    @property
    def state_text(self) -> str:
        """What the toolbar says about the pause or the last export."""
        return self._state.text()

    def showEvent(self, event: QShowEvent) -> None:
        """Go on drawing; the plots are made once the page is on screen."""
        super().showEvent(event)
        self.set_snapshot(self._bridge.snapshot)
        self._timer.start()
        if self.plots is None:
            QTimer.singleShot(0, self, self.make_plots)

    def hideEvent(self, event: QHideEvent) -> None:
        """Stop drawing."""
        super().hideEvent(event)
        self._timer.stop()

    def make_plots(self) -> None:
        """Build the plots, once; it imports the plotting library, which takes half a second."""
        if self.plots is None:
            from laya_desktop.gui.views.plot_grid import PlotGrid

            self.plots = PlotGrid()
            self._body.replaceWidget(self._room, self.plots)
            self._room.deleteLater()
            self._body.setStretchFactor(self.plots, 1)
            self.draw()

    def draw(self) -> None:
        """Draw the plots now, unless they are paused or nobody sees them."""
        if self.plots is not None and not self.paused and self.isVisible():
            self.plots.draw(self._bridge.snapshot, self._history, self.window_s)

    def set_snapshot(self, snapshot: NodeSnapshot) -> None:
        """Show a snapshot on the cards."""
        for card, gauge in zip(
            self.cards, (gauge_card.ram, gauge_card.vram, gauge_card.cpu, gauge_card.queue), strict=True
        ):
            card.show_gauge(gauge(snapshot))
        self.guard.set_lines(guard_lines(snapshot))

    def _on_range(self, index: int) -> None:
        self.window_s = WINDOWS[index][1]
        if self.plots is not None:
            self.plots.draw(self._paused or self._bridge.snapshot, self._history, self.window_s)

    def _toggle_pause(self) -> None:
        self._paused = None if self.paused else self._bridge.snapshot
        self.pause.setText(tr("Resume") if self.paused else tr("Pause"))
        self.pause.set_icon("play" if self.paused else "pause")
        moment = datetime.now().astimezone().strftime("%H:%M:%S")
        self._state.setText(
            tr("Plots paused at {moment}; values are still recorded.", moment=moment) if self.paused else ""
        )
        self.draw()

    def _export_png(self) -> None:
        path = self._dialogs.save_path(self, tr("Export picture"), "laya-overview.png", tr("PNG pictures (*.png)"))
        if path is not None:
            self._write(path, lambda: (self.plots or self).grab().save(str(path), "PNG"))

    def _export_csv(self) -> None:
        path = self._dialogs.save_path(self, tr("Export values"), "laya-overview.csv", tr("CSV files (*.csv)"))
        if path is not None:
            self._write(path, lambda: self._history.export_csv(path, self.window_s))

    def _write(self, path: Path, write: Callable[[], object]) -> None:
        try:
            done = write()
        except OSError as error:
            self._state.setText(tr("Could not write {path}: {strerror}.", path=path, strerror=error.strerror))
            return
        self._state.setText(tr("Wrote {path}.", path=path) if done else tr("Could not write {path}.", path=path))
