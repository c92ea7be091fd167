"""What the Benchmark page draws and lists: charts, tables and titles of results. Pure; no widgets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from laya_desktop.bench.compare import Metric, Row, compare
from laya_desktop.bench.results import BenchResult, Point, Quantiles, Scenario, TuneResult
from laya_desktop.gui import format as fmt
from laya_desktop.gui.i18n import QT_TR_NOOP, tr

RESULTS_MOST = 4
"""Results that are compared at once: more curves cannot be told apart."""
LETTERS = "ABCD"
_ROLES = ("series_1", "series_2", "series_3", "series_4")
_P50, _P99 = "p50", "p99"


@dataclass(frozen=True, slots=True)
class Curve:
    """One curve: values by the number of requests at once."""

    key: str
    name: str
    role: str
    dashed: bool
    points: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """One chart of the page."""

    title: str
    unit: str
    log: bool
    text: Callable[[float | None], str]
    curves: tuple[Curve, ...]


@dataclass(frozen=True, slots=True)
class Cell:
    """A text and its tone; empty: the normal one."""

    text: str
    tone: str = ""


@dataclass(frozen=True, slots=True)
class Figures:
    """A table: titles, and rows of as many cells."""

    titles: tuple[str, ...] = ()
    rows: tuple[tuple[Cell, ...], ...] = ()


SCENARIOS = {
    Scenario.ROUTING: QT_TR_NOOP("Pure routing"),
    Scenario.SMALL: QT_TR_NOOP("Small model"),
    Scenario.LARGE: QT_TR_NOOP("Larger model"),
}
_METRICS = {
    "requests_per_s": QT_TR_NOOP("Requests per second"),
    "tokens_per_s": QT_TR_NOOP("Tokens per second"),
    "latency_p50": QT_TR_NOOP("Latency, p50"),
    "latency_p95": QT_TR_NOOP("Latency, p95"),
    "latency_p99": QT_TR_NOOP("Latency, p99"),
    "ttft_p50": QT_TR_NOOP("First token, p50"),
    "ttft_p99": QT_TR_NOOP("First token, p99"),
    "itl_p50": QT_TR_NOOP("Between tokens, p50"),
    "itl_p99": QT_TR_NOOP("Between tokens, p99"),
    "routing_p50": QT_TR_NOOP("Routing, p50"),
    "routing_p99": QT_TR_NOOP("Routing, p99"),
    "failed": QT_TR_NOOP("Failed"),
    "cpu": QT_TR_NOOP("CPU"),
    "ram": QT_TR_NOOP("RAM peak"),
}


def millis(value_ms: float | None) -> str:
    """A time given in milliseconds."""
    return fmt.micros(None if value_ms is None else value_ms * 1000)


def _number(value: float | None) -> str:
    return fmt.rate(value, "")


def scenario_name(scenario: Scenario) -> str:
    """On screen."""
    return tr(str(SCENARIOS[scenario]))


def when(result: BenchResult) -> str:
    """When it was measured, in local time."""
    return f"{datetime.fromtimestamp(result.created_unix_s):%Y-%m-%d %H:%M}"  # noqa: DTZ006 - shown to a person


def what(result: BenchResult) -> str:
    """What was measured, short: the models, or the router."""
    names = [s.target for s in result.series if s.scenario is not Scenario.ROUTING]
    if len(names) < len(result.series):
        names.insert(0, tr("router"))
    return ", ".join(names)


def facts(result: BenchResult) -> str:
    """Machine, versions and lengths in one line."""
    machine = result.machine
    cores = tr("{n} cores", n=machine.cores_physical or machine.cores_logical or fmt.NONE)
    version = f"Laya {result.versions.get('laya-desktop', fmt.NONE)}"
    lengths = tr("prompt {prompt}, answer {answer} tokens", prompt=result.prompt_tokens, answer=result.max_tokens)
    return " · ".join((machine.processor, cores, fmt.size(machine.ram_bytes), version, lengths))


def charts(results: Sequence[BenchResult], scenario: Scenario) -> tuple[Chart, ...]:
    """Four charts of a scenario; one result has its own two colours, several have a colour each."""

    def times(name: str, title: str, unit: str, text: Callable[[float | None], str]) -> Chart:
        curves = [
            _curve(results, i, scenario, name, q, dashed=q == _P99) for i in range(len(results)) for q in (_P50, _P99)
        ]
        unit = f"{unit}, p50 / p99" if len(results) > 1 else unit
        return Chart(title, unit, log=True, text=text, curves=tuple(c for c in curves if c.points))

    def plain(name: str, title: str, unit: str) -> Chart:
        curves = [_curve(results, i, scenario, name, "", dashed=bool(i % 2)) for i in range(len(results))]
        return Chart(title, unit, log=False, text=_number, curves=tuple(c for c in curves if c.points))

    latency = times("latency_ms", tr("Latency"), tr("ms, log"), millis)
    if scenario is Scenario.ROUTING:
        return (
            latency,
            plain("requests_per_s", tr("Throughput"), tr("requests/s")),
            times("routing_us", tr("Routing, as the node measures it"), tr("µs, log"), fmt.micros),
            plain("cpu_percent", tr("CPU of the node"), tr("% of a core")),
        )
    return (
        times("ttft_ms", tr("First token"), tr("ms, log"), millis),
        plain("tokens_per_s", tr("Throughput"), tr("tokens/s")),
        latency,
        times("itl_ms", tr("Between tokens"), tr("ms, log"), millis),
    )


def _curve(
    results: Sequence[BenchResult], place: int, scenario: Scenario, name: str, rank: str, *, dashed: bool
) -> Curve:
    series = results[place].of(scenario)
    points = []
    for point in series.points if series else ():
        value = getattr(point, name)
        if isinstance(value, Quantiles):
            value = getattr(value, rank)
        if value is not None and value > 0:
            points.append((point.concurrency, float(value)))
    if len(results) > 1:
        label, role = LETTERS[place], _ROLES[place]
    else:
        label, role = rank or (series.target if series else ""), _ROLES[1 if dashed else 0]
    return Curve(f"{place}.{name}.{rank}", label, role, dashed, tuple(points))


def scenarios(results: Sequence[BenchResult]) -> tuple[Scenario, ...]:
    """Those that any of the results has."""
    return tuple(s for s in Scenario if any(r.of(s) for r in results))


def figures(results: Sequence[BenchResult], scenario: Scenario) -> Figures:
    """One result: a row a level. Several: a row a figure, with differences from the first."""
    if len(results) == 1:
        series = results[0].of(scenario)
        return _level_rows(series.points if series else (), routing=scenario is Scenario.ROUTING)
    names = [f"{LETTERS[i]}  {when(r)}" for i, r in enumerate(results)]
    return Figures(
        (tr("At once"), tr("Figure"), *names),
        tuple(_compared(row) for row in compare(results, scenario)),
    )


def _level_rows(points: Sequence[Point], *, routing: bool) -> Figures:
    tokens = () if routing else (tr("tokens/s"), tr("TTFT p50"), tr("TTFT p99"), tr("ITL p50"))
    titles = (
        tr("At once"), tr("Answered"), tr("Failed"), tr("req/s"), *tokens, tr("p50"), tr("p95"), tr("p99"),
        tr("Routing p99"), tr("CPU"), tr("RAM peak"),
    )  # fmt: skip
    return Figures(titles, tuple(_level_row(p, routing=routing) for p in points))


def _level_row(point: Point, *, routing: bool) -> tuple[Cell, ...]:
    def of(value: Quantiles | None, rank: str, text: Callable[[float | None], str] = millis) -> str:
        return text(None if value is None else getattr(value, rank))

    model = (
        fmt.rate(point.tokens_per_s, ""), of(point.ttft_ms, _P50), of(point.ttft_ms, _P99), of(point.itl_ms, _P50)
    )  # fmt: skip
    texts = (
        fmt.rate(point.requests_per_s, ""), *(() if routing else model),
        *(of(point.latency_ms, q) for q in (_P50, "p95", _P99)), of(point.routing_us, _P99, fmt.micros),
        fmt.percent(point.cpu_percent), fmt.size(point.ram_peak_bytes),
    )  # fmt: skip
    failed = Cell(fmt.count(point.failed), "critical" if point.failed else "")
    return (Cell(str(point.concurrency)), Cell(fmt.count(point.requests)), failed, *(Cell(t) for t in texts))


def _compared(row: Row) -> tuple[Cell, ...]:
    cells = [Cell(str(row.concurrency)), Cell(tr(str(_METRICS[row.metric.key])))]
    for place, value in enumerate(row.values):
        text = _value(row.metric, value)
        change, better = row.changes[place], row.better(place)
        if place and change is not None:
            sign = "" if better is None else " ▲" if better else " ▼"
            text += f"  {change * 100:+.0f} %{sign}"
        cells.append(Cell(text, "" if not place or better is None else "calm" if better else "warn"))
    return tuple(cells)


def _value(metric: Metric, value: float | None) -> str:
    texts: dict[str, Callable[[float | None], str]] = {
        "ms": millis, "us": fmt.micros, "per_s": _number, "tokens_per_s": _number, "percent": fmt.percent,
        "bytes": fmt.size, "count": fmt.count,
    }  # fmt: skip
    return texts[metric.unit](value)


def tune_figures(result: TuneResult) -> Figures:
    """A row a setting."""
    titles = ("batch_size", "num_worker", tr("tokens/s"), tr("TTFT p50"), tr("p99"), tr("RAM peak"), "")
    rows = []
    for number, trial in enumerate(result.trials):
        point, tone = trial.point, "calm" if trial.setting == result.best else ""
        note = tr("now") if number == 0 else tr("best") if trial.setting == result.best else trial.problem or ""
        values = (
            fmt.rate(trial.tokens_per_s, ""),
            millis(point.ttft_ms.p50 if point and point.ttft_ms else None),
            millis(point.latency_ms.p99 if point and point.latency_ms else None),
            fmt.size(point.ram_peak_bytes if point else None),
        )
        texts = (str(trial.setting.batch_size), str(trial.setting.num_worker), *values, note)
        rows.append(
            tuple(Cell(t, "warn" if trial.problem and i == len(texts) - 1 else tone) for i, t in enumerate(texts))
        )
    return Figures(titles, tuple(rows))
