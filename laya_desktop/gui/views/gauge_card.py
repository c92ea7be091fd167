"""The four cards on top of the Overview: a number, a bar, and where it is heading in words. Qt main thread.

``ram``, ``vram``, ``cpu`` and ``queue`` turn a snapshot into what a card shows, without Qt; ``GaugeCard`` shows it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from laya_desktop.gui import format as fmt
from laya_desktop.gui import theme
from laya_desktop.gui.i18n import tr
from laya_desktop.gui.qtmodels.node_words import in_words
from laya_desktop.gui.views.widgets import BarPart, Card, ElidedLabel, FigureLabel, HBar, label, row, set_property
from laya_desktop.state.enums import Level
from laya_desktop.state.snapshot import Forecast, GpuSnapshot, NodeSnapshot

_RANK = {Level.CALM: 0, Level.WATCH: 1, Level.WARN: 2, Level.CRITICAL: 3}
MODEL_ROLES = ("series_2", "series_3", "series_4", "series_5")


@dataclass(frozen=True, slots=True)
class Gauge:
    """What a card shows; ``limit`` is a share of the bar."""

    caption: str
    note: str
    figure: str
    parts: tuple[BarPart, ...]
    text: str
    level: Level = Level.CALM
    limit: float | None = None


class GaugeCard(Card):
    """One card."""

    def __init__(self) -> None:
        super().__init__(padding=14, spacing=6)
        self.caption = ElidedLabel("", "secondary")
        self.note = label("", "secondary")
        self.figure = FigureLabel()
        self.bar = HBar()
        self.text = ElidedLabel("", "secondary")
        top = row(self.caption, self.note)
        top.setStretch(0, 1)
        self.body.addLayout(top)
        self.body.addWidget(self.figure)
        self.body.addWidget(self.bar)
        self.body.addWidget(self.text)

    def show_gauge(self, gauge: Gauge) -> None:
        """Show new values; what is the same is not touched."""
        self.caption.set_text(gauge.caption)
        self.note.setText(gauge.note)
        self.figure.setText(gauge.figure)
        self.bar.set_parts(gauge.parts, gauge.limit)
        symbol = theme.level_symbol(gauge.level)
        text = f"{symbol} {gauge.text}" if symbol else gauge.text
        short = gauge.text.rpartition(", ")[2].replace(" at this rate", "")
        self.text.set_text(text, f"{symbol} {short}" if symbol else short)
        set_property(self.text, "tone", theme.level_role(gauge.level))


def memory_limit(total_bytes: int | None, fraction: float, reserve_bytes: int) -> int | None:
    """Where the guard steps in: the smaller of the fraction and what the reserve leaves; None where unknown."""
    return None if total_bytes is None else max(0, min(int(total_bytes * fraction), total_bytes - reserve_bytes))


def ram_limit(snapshot: NodeSnapshot) -> int | None:
    """Bytes of RAM in use at which the guard steps in, or None."""
    if snapshot.config is None:
        return None
    guard = snapshot.config.guard
    return memory_limit(snapshot.machine.ram_total_bytes, guard.mem_fraction, guard.reserve_ram)


def vram_limit(snapshot: NodeSnapshot, gpu: GpuSnapshot) -> int | None:
    """Bytes of a GPU's memory in use at which the guard steps in, or None."""
    if snapshot.config is None:
        return None
    guard = snapshot.config.guard
    return memory_limit(gpu.vram_total_bytes, guard.mem_fraction, guard.reserve_vram)


def forecast_of(snapshot: NodeSnapshot, resource: str) -> Forecast | None:
    """The forecast of ``ram``, ``vram:0`` or ``queue:<model>``; ``queue`` gives the worst queue's."""
    found = [f for f in snapshot.forecasts if f.resource == resource or f.resource.startswith(resource + ":")]
    return max(found, key=lambda f: _RANK[f.level], default=None)


def _outlook(forecast: Forecast | None, name: str) -> tuple[str, Level]:
    """In words, without the resource's name, which the card has as its caption."""
    if forecast is None or (forecast.slope_per_s is None and not forecast.text):
        return tr("measuring …"), Level.CALM
    return in_words(forecast.text.removeprefix(f"{name} ")) or tr("steady"), forecast.level


def short_gpu_name(name: str) -> str:
    """``NVIDIA GeForce RTX 3090`` → ``RTX 3090``."""
    for prefix in ("NVIDIA GeForce ", "NVIDIA ", "AMD Radeon ", "AMD "):
        name = name.removeprefix(prefix)
    return name


def ram(snapshot: NodeSnapshot) -> Gauge:
    """The machine's memory: models first, then everything else."""
    machine = snapshot.machine
    total = machine.ram_total_bytes
    text, level = _outlook(forecast_of(snapshot, "ram"), "RAM")
    parts: list[BarPart] = []
    if total and machine.ram_used_bytes is not None:
        models = [(m.name, m.rss_bytes) for m in snapshot.models if m.rss_bytes]
        rest = max(0, machine.ram_used_bytes - sum(rss for _, rss in models))
        parts.append(BarPart(rest / total, "series_1", tr("other programs")))
        parts += [BarPart(rss / total, MODEL_ROLES[i % 4], name) for i, (name, rss) in enumerate(models)]
    limit = ram_limit(snapshot)
    return Gauge(
        "RAM",
        fmt.size_of(machine.ram_used_bytes, total),
        tr("{ram_available_bytes} free", ram_available_bytes=fmt.size(machine.ram_available_bytes))
        if machine.ram_available_bytes is not None
        else fmt.NONE,
        tuple(parts),
        text,
        level,
        limit / total if limit is not None and total else None,
    )


def _vram_free(gpu: GpuSnapshot) -> float:
    """Bytes; infinite where unknown, so that a card that can be read is shown first."""
    known = gpu.vram_total_bytes is not None and gpu.vram_used_bytes is not None
    return (gpu.vram_total_bytes or 0) - (gpu.vram_used_bytes or 0) if known else math.inf


def vram(snapshot: NodeSnapshot) -> Gauge:
    """The GPU with the least room, or why there is none."""
    gpus = snapshot.machine.gpus
    if not gpus:
        reason = snapshot.machine.gpu_reason or snapshot.capability.reason or tr("not measured yet")
        return Gauge("VRAM", "", tr("no GPU") if snapshot.machine.gpu_reason else fmt.NONE, (), reason)
    gpu = min(gpus, key=_vram_free)
    total, used = gpu.vram_total_bytes, gpu.vram_used_bytes
    text, level = _outlook(forecast_of(snapshot, f"vram:{gpu.index}"), "VRAM")
    limit = vram_limit(snapshot, gpu)
    known = total is not None and used is not None
    return Gauge(
        tr(
            "VRAM{value} · {short_gpu_name}",
            value=f" {gpu.index}" if len(gpus) > 1 else "",
            short_gpu_name=short_gpu_name(gpu.name),
        ),
        fmt.size_of(used, total),
        tr("{size} free", size=fmt.size(total - used)) if total is not None and used is not None else fmt.NONE,
        (BarPart(used / total, "series_3", "used"),) if known and total and used is not None else (),
        text,
        level,
        limit / total if limit is not None and total else None,
    )


def cpu(snapshot: NodeSnapshot) -> Gauge:
    """The machine's cores, and who keeps them busy."""
    machine = snapshot.machine
    percent = machine.cpu_percent
    busiest = max((m for m in snapshot.models if m.cpu_percent), key=lambda m: m.cpu_percent or 0.0, default=None)
    words = []
    if busiest is not None and busiest.cpu_percent is not None and busiest.cpu_percent >= 5:
        words.append(tr("{name} {value:.1f} cores", name=busiest.name, value=busiest.cpu_percent / 100))
    if machine.cpu_temperature_c is not None:
        words.append(fmt.temperature(machine.cpu_temperature_c))
    if not words and machine.load_1min is not None:
        words.append(tr("load {load_1min:.1f}", load_1min=machine.load_1min))
    return Gauge(
        "CPU",
        fmt.counted(machine.cores_logical, "core") if machine.cores_logical else fmt.NONE,
        fmt.percent(percent),
        (BarPart(percent / 100, "series_1", "busy"),) if percent is not None else (),
        " · ".join(words) or tr("idle"),
    )


def queue(snapshot: NodeSnapshot) -> Gauge:
    """All queues together, and the outlook of the worst one."""
    limit = sum(m.queue_limit for m in snapshot.models)
    fullest = max(snapshot.models, key=lambda m: m.waiting / m.queue_limit if m.queue_limit else 0, default=None)
    if fullest is not None and fullest.waiting and fullest.queue_limit:
        limit = fullest.queue_limit
    forecast = forecast_of(snapshot, "queue")
    level = forecast.level if forecast else Level.CALM
    words = in_words(forecast.text).removeprefix("queue ") if forecast and snapshot.waiting else ""
    note = tr("{running} running", running=snapshot.running) + (tr(" · limit {limit}", limit=limit) if limit else "")
    return Gauge(
        tr("Queue"),
        note,
        tr("{waiting} waiting", waiting=fmt.count(snapshot.waiting)),
        (BarPart(snapshot.waiting / limit, "series_4", "waiting"),) if limit else (),
        words or (tr("moving") if snapshot.waiting else tr("no queue") if not limit else tr("empty")),
        level,
    )
