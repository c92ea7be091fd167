"""The small window that stays on top: headroom, tokens a second, the queue. Qt main thread."""

from __future__ import annotations

from PySide6.QtCore import QByteArray, QSettings, Qt, Signal
from PySide6.QtGui import QCloseEvent, QKeyEvent, QMouseEvent, QShowEvent
from PySide6.QtWidgets import QGridLayout, QVBoxLayout, QWidget

from laya_desktop.gui import format as fmt
from laya_desktop.gui import theme
from laya_desktop.gui.bridge import NodeBridge
from laya_desktop.gui.i18n import tr
from laya_desktop.gui.views import gauge_card, icons
from laya_desktop.gui.views.basics import HBar
from laya_desktop.gui.views.widgets import ElidedLabel, button, label, row, set_property
from laya_desktop.state.snapshot import NodeSnapshot

_WIDTH_PX = 268


class MiniView(QWidget):
    """Follows the bridge while it is visible; a double click opens the whole window.

    Args:
        bridge: where snapshots come from.
        settings: where its place is kept.
    """

    window_wanted = Signal()

    def __init__(self, bridge: NodeBridge, settings: QSettings) -> None:
        flags = Qt.WindowType.Tool | Qt.WindowType.WindowStaysOnTopHint | Qt.WindowType.CustomizeWindowHint
        super().__init__(None, flags | Qt.WindowType.WindowTitleHint | Qt.WindowType.WindowCloseButtonHint)
        self._bridge, self._settings = bridge, settings
        self.setObjectName("page")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setWindowIcon(icons.app_icon())
        self.setWindowTitle("Laya")
        self.setAccessibleName(tr("Mini view"))
        self.setFixedWidth(_WIDTH_PX)
        self.figures = {key: label() for key in ("ram", "vram", "queue")}
        self.bars = {key: HBar(5) for key in ("ram", "vram", "queue")}
        self._names = {"ram": label(tr("RAM"), "secondary"), "vram": label(tr("VRAM"), "secondary")}
        self._names["queue"] = label(tr("Queue"), "secondary")
        self.tokens = label("", "title")
        self.text = ElidedLabel("", "secondary")
        self.open_button = button("", "ghost", icon="external", on_click=self.window_wanted.emit)
        self.open_button.setToolTip(tr("Show Laya Desktop"))
        self.open_button.setAccessibleName(tr("Show Laya Desktop"))
        grid = QGridLayout()
        grid.setHorizontalSpacing(theme.SPACE_2)
        grid.setVerticalSpacing(6)
        grid.setColumnStretch(1, 1)
        for i, key in enumerate(self.figures):
            grid.addWidget(self._names[key], i, 0)
            grid.addWidget(self.bars[key], i, 1)
            grid.addWidget(self.figures[key], i, 2, Qt.AlignmentFlag.AlignTrailing)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(theme.SPACE_3, 10, theme.SPACE_2, 10)
        whole.setSpacing(6)
        whole.addLayout(row(self.tokens, None, self.open_button))
        whole.addLayout(grid)
        whole.addWidget(self.text)
        bridge.snapshot_changed.connect(self._on_snapshot)

    def showEvent(self, event: QShowEvent) -> None:
        """Stand where it stood."""
        super().showEvent(event)
        geometry = self._settings.value("mini_geometry")
        if isinstance(geometry, QByteArray):
            self.restoreGeometry(geometry)
        self.set_snapshot(self._bridge.snapshot)

    def closeEvent(self, event: QCloseEvent) -> None:
        """Remember the place."""
        self._settings.setValue("mini_geometry", self.saveGeometry())
        super().closeEvent(event)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """To the whole window."""
        self.window_wanted.emit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Escape closes."""
        if event.key() == Qt.Key.Key_Escape:
            self.close()
        else:
            super().keyPressEvent(event)

    def _on_snapshot(self, snapshot: NodeSnapshot) -> None:
        if self.isVisible():
            self.set_snapshot(snapshot)

    def set_snapshot(self, snapshot: NodeSnapshot) -> None:
        """Show a snapshot."""
        self.tokens.setText(fmt.rate(snapshot.decode_tokens_per_s))
        machine = snapshot.machine
        free = [
            g.vram_total_bytes - g.vram_used_bytes
            for g in machine.gpus
            if g.vram_total_bytes is not None and g.vram_used_bytes is not None
        ]
        texts = {
            "ram": tr("{size} free", size=fmt.size(machine.ram_available_bytes)),
            "vram": tr("{size} free", size=fmt.size(min(free))) if free else "",
            "queue": tr("{n} waiting", n=fmt.count(snapshot.waiting)),
        }
        told = ""
        for key, gauge_of in (("ram", gauge_card.ram), ("vram", gauge_card.vram), ("queue", gauge_card.queue)):
            gauge = gauge_of(snapshot)
            symbol = theme.level_symbol(gauge.level)
            self.figures[key].setText(f"{symbol} {texts[key]}".strip())
            set_property(self.figures[key], "tone", theme.level_role(gauge.level))
            self.bars[key].set_parts(gauge.parts, gauge.limit)
            for widget in (self._names[key], self.bars[key], self.figures[key]):
                widget.setVisible(bool(texts[key]))
            told = told or (f"{symbol} {gauge.text}" if symbol else "")
        self.text.set_text(told)
        self.text.setVisible(bool(told))
        self.setFixedHeight(self.sizeHint().height())
