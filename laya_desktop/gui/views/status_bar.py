"""The line at the bottom: the machine and the node in six numbers. Qt main thread.

``status_items`` turns a snapshot into texts and tones, without Qt.
"""

from __future__ import annotations

from PySide6.QtWidgets import QFrame

from laya_desktop.gui import format as fmt
from laya_desktop.gui import theme
from laya_desktop.gui.i18n import tr
from laya_desktop.gui.views.gauge_card import forecast_of
from laya_desktop.gui.views.widgets import label, row, set_property
from laya_desktop.state.enums import Level
from laya_desktop.state.snapshot import NodeSnapshot

_KEYS = ("cpu", "ram", "vram", "tokens", "queue", "routing")


def status_items(snapshot: NodeSnapshot) -> dict[str, tuple[str, str]]:
    """Text and tone of each item; an empty text hides it."""
    machine = snapshot.machine
    items = {
        "cpu": (tr("CPU {percent}", percent=fmt.percent(machine.cpu_percent)), "secondary"),
        "ram": _headroom(snapshot, "RAM", machine.ram_available_bytes, "ram"),
        "vram": ("", "secondary"),
        "tokens": (fmt.rate(snapshot.decode_tokens_per_s), "secondary"),
        "queue": (tr("{waiting} waiting", waiting=fmt.count(snapshot.waiting)), "secondary"),
        "routing": (tr("routing p99 {p99_us}", p99_us=fmt.micros(snapshot.routing.p99_us)), "secondary"),
    }
    frees = [
        (g.vram_total_bytes - g.vram_used_bytes, g.index)
        for g in machine.gpus
        if g.vram_total_bytes is not None and g.vram_used_bytes is not None
    ]
    if frees:
        free, index = min(frees)
        items["vram"] = _headroom(snapshot, "VRAM", free, f"vram:{index}")
    forecast = forecast_of(snapshot, "queue")
    if forecast is not None and forecast.level is not Level.CALM:
        text = f"{items['queue'][0]} {theme.level_symbol(forecast.level)}"
        items["queue"] = (text, theme.level_role(forecast.level))
    return items


def _headroom(snapshot: NodeSnapshot, name: str, free_bytes: int | None, resource: str) -> tuple[str, str]:
    if free_bytes is None:
        return f"{name} {fmt.NONE}", "secondary"
    text = tr("{name} {free_bytes} free", name=name, free_bytes=fmt.size(free_bytes))
    forecast = forecast_of(snapshot, resource)
    if forecast is None or forecast.level is Level.CALM:
        return text, "secondary"
    left = fmt.countdown(forecast.time_to_full_s) if forecast.time_to_full_s is not None else ""
    return f"{text} {theme.level_symbol(forecast.level)} {left}".rstrip(), theme.level_role(forecast.level)


class StatusBar(QFrame):
    """Shows them, and the configuration file's name on the right."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("statusBar")
        self.setFixedHeight(theme.STATUS_HEIGHT)
        self.items = {key: label() for key in _KEYS}
        self.file = label()
        layout = row(*self.items.values(), None, self.file, spacing=22)
        layout.setContentsMargins(theme.SPACE_4, 0, theme.SPACE_4, 0)
        self.setLayout(layout)

    def update_snapshot(self, snapshot: NodeSnapshot) -> None:
        """Show a snapshot; labels whose text is the same are not touched."""
        for key, (text, tone) in status_items(snapshot).items():
            item = self.items[key]
            if item.text() != text:
                item.setText(text)
            if item.isHidden() == bool(text):
                item.setVisible(bool(text))
            set_property(item, "tone", tone)
        path = snapshot.config_status.path
        name = path.replace("\\", "/").rsplit("/", 1)[-1] if path else tr("not saved yet")
        if self.file.text() != name:
            self.file.setText(name)
            self.file.setToolTip(path or "")
