"""The six plots of the Overview on one time axis. Qt main thread; drawn from the history, told when to draw.

Which curves there are follows the models that are loaded: at most three get curves of their own.
"""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QWidget

from laya_desktop.gui import format as fmt
from laya_desktop.gui import theme
from laya_desktop.gui.i18n import QT_TR_NOOP, tr
from laya_desktop.gui.qtmodels.history import GAP_S, MAX_POINTS, History
from laya_desktop.gui.views.gauge_card import forecast_of, ram_limit, short_gpu_name, vram_limit
from laya_desktop.gui.views.metric_plot import FUTURE_SHARE, MetricPlot
from laya_desktop.gui.views.plot_scale import Scale, Series
from laya_desktop.state.snapshot import NodeSnapshot

MODELS_SHOWN = 3
LEAST_PLOT_PX = 148
"""A plot that is lower than this says nothing; the page scrolls then."""
_GROWS_FOR = 12
"""Samples by which a curve grows before it is drawn whole again."""
_MODEL_LOOKS = (("series_2", False), ("series_3", True), ("series_4", False))
_NO_GPU = QT_TR_NOOP("No GPU to plot")


def _number(value: float | None) -> str:
    return fmt.rate(value, "")


def _short_gb(value: float | None) -> str:
    return fmt.NONE if value is None else f"{value:.1f}"


class _Follower:
    """Keeps a plot at the end of a history. Drawing whole curves each time took half of the main thread's time.

    Args:
        plot: what is drawn on.
        turn: which of the plots it is, so that they are not all drawn whole at once.
    """

    def __init__(self, plot: MetricPlot, turn: int) -> None:
        self._plot, self._turn = plot, turn
        self._whole: object = None
        self._count, self._now_s = 0, 0.0

    def follow(self, history: History, window_s: float) -> None:
        """Draw what is new, or everything where something else has changed, and while values under a pointer show."""
        plot, now_s = self._plot, history.now_s or 0.0
        round_ = (history.count + self._turn * _GROWS_FOR // 6) // _GROWS_FOR
        whole = (history, history.epoch, round_, window_s, plot.series, plot.scale)
        if whole != self._whole or plot.hover_s is not None or now_s - self._now_s > GAP_S:
            points = MAX_POINTS - _GROWS_FOR
            plot.draw(window_s, {s.key: history.view(s.key, window_s, points) for s in plot.series}, now_s)
        elif history.count > self._count:
            plot.advance(now_s, {s.key: history.since(s.key, self._count) for s in plot.series})
        self._whole, self._count, self._now_s = whole, history.count, now_s


class PlotGrid(QWidget):
    """Two rows of three plots with linked hover lines."""

    def __init__(self) -> None:
        super().__init__()
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)  # time runs to the right in every language
        self.setMinimumHeight(2 * LEAST_PLOT_PX + theme.SPACE_3)
        self.latency = MetricPlot(tr("Routing latency"), tr("µs, log"), Scale("log", low=10, least=10_000), _number)
        self.tokens = MetricPlot(tr("Token throughput"), tr("per s"), Scale("log", low=0, least=100), _number)
        self.queue = MetricPlot(tr("Queue and in flight"), "", Scale(least=4), fmt.count)
        self.cpu = MetricPlot("CPU", "%", Scale(top=100), _number)
        self.ram = MetricPlot("RAM", "GB", Scale(), _short_gb)
        self.vram = MetricPlot("VRAM", "GB", Scale(), _short_gb)
        self.plots = (self.latency, self.tokens, self.queue, self.cpu, self.ram, self.vram)
        self._shown: object = None
        self._hover_s: float | None = None
        self._followers = [_Follower(plot, turn) for turn, plot in enumerate(self.plots)]
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setSpacing(theme.SPACE_3)
        for i, plot in enumerate(self.plots):
            grid.addWidget(plot, i // 3, i % 3)
            grid.setColumnStretch(i % 3, 1)
            grid.setRowStretch(i // 3, 1)
            plot.hovered.connect(self._on_hovered)
        self.latency.set_series((Series("routing.p50", "p50"), Series("routing.p99", "p99", "series_2", True)))
        self.queue.set_series(
            (
                Series("queue.waiting", tr("waiting"), "series_4"),
                Series("queue.running", tr("running"), "series_1", True),
            )
        )

    def _on_hovered(self, age_s: float | None) -> None:
        self._hover_s = age_s
        for plot in self.plots:
            plot.show_hover(age_s)

    def draw(self, snapshot: NodeSnapshot, history: History, window_s: float) -> None:
        """Draw everything for the last ``window_s`` seconds; nothing where nothing is new."""
        shown = (snapshot.seq, history, history.epoch, history.count, window_s, self._hover_s)
        if shown == self._shown:
            return
        self._shown = shown
        self._arrange(snapshot)
        self._marks(snapshot, window_s)
        for follower in self._followers:
            follower.follow(history, window_s)

    def _arrange(self, snapshot: NodeSnapshot) -> None:
        loaded = [m.name for m in snapshot.models if m.pid is not None][:MODELS_SHOWN]
        looks = list(zip(loaded, _MODEL_LOOKS, strict=False))
        decode = [Series(f"decode:{n}", n, role, dashed) for n, (role, dashed) in looks]
        prefill_role = "series_1"
        if len(decode) < 2:
            decode, prefill_role = [Series("tokens.decode", tr("decode"))], "series_3"
        self.tokens.set_series((*decode, Series("tokens.prefill", tr("prefill"), prefill_role, True)))
        for plot, key, name in ((self.cpu, "cpu", tr("machine")), (self.ram, "ram", tr("used"))):
            own = [Series(f"{key}:{n}", n, role, dashed) for n, (role, dashed) in looks]
            plot.set_series((Series(key, name), *own))
        gpus = snapshot.machine.gpus[: MODELS_SHOWN + 1]
        gpu_looks = (("series_3", False), ("series_1", True), ("series_4", False), ("series_2", True))
        self.vram.set_series(
            tuple(
                Series(
                    f"vram:{g.index}",
                    short_gpu_name(g.name) if len(gpus) == 1 else tr("GPU {index}", index=g.index),
                    role,
                    dashed,
                )
                for g, (role, dashed) in zip(gpus, gpu_looks, strict=False)
            )
        )

    def _marks(self, snapshot: NodeSnapshot, window_s: float) -> None:
        self.latency.set_note(latency_note(snapshot, window_s))
        machine = snapshot.machine
        if machine.ram_total_bytes:
            self.ram.set_scale(Scale(top=machine.ram_total_bytes / 1e9))
        limit = ram_limit(snapshot)
        self.ram.set_limit(None if limit is None else limit / 1e9)
        self.ram.set_forecast(ram_forecast(snapshot, window_s * FUTURE_SHARE))
        if machine.gpus:
            self.vram.set_empty(None)
            totals = [g.vram_total_bytes for g in machine.gpus if g.vram_total_bytes]
            if totals:
                self.vram.set_scale(Scale(top=max(totals) / 1e9))
            limits = [v for g in machine.gpus if (v := vram_limit(snapshot, g)) is not None]
            self.vram.set_limit(limits[0] / 1e9 if len(set(limits)) == 1 else None)  # one line for cards of one size
        else:
            self.vram.set_empty(
                tr(_NO_GPU), machine.gpu_reason or snapshot.capability.reason or tr("Not measured yet.")
            )


def latency_note(snapshot: NodeSnapshot, window_s: float) -> str:
    """Routing latency over the whole window in words; empty where nothing was routed."""
    window = next((w for w in snapshot.routing_windows if w.window_s == window_s and w.count), None)
    if window is None:
        return ""
    return tr(
        "{minutes:.0f} min: p50 {p50} · p95 {p95} · p99 {p99} · max {highest}",
        minutes=window_s / 60,
        p50=fmt.rate(window.p50_us, ""),
        p95=fmt.rate(window.p95_us, ""),
        p99=fmt.rate(window.p99_us, ""),
        highest=fmt.rate(window.max_us, ""),
    )


def ram_forecast(snapshot: NodeSnapshot, room_s: float) -> tuple[tuple[float, float], tuple[float, float]] | None:
    """From now to where RAM will be after ``room_s`` seconds, or to the limit if that is sooner; seconds and GB.

    None while RAM is not filling up.
    """
    forecast, used, limit = forecast_of(snapshot, "ram"), snapshot.machine.ram_used_bytes, ram_limit(snapshot)
    if forecast is None or used is None or not forecast.slope_per_s or forecast.time_to_full_s is None:
        return None
    end_s = min(room_s, forecast.time_to_full_s)
    end = used + forecast.slope_per_s * end_s
    return (0.0, used / 1e9), (end_s, (min(end, max(limit, used)) if limit is not None else end) / 1e9)
