"""What a result says about this machine, as findings with values. Pure; any thread.

The sentences are here in English; the window passes them through its translation, so each is one literal with
``{names}`` for values.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from laya_desktop.bench.results import BenchResult, Scenario, Series, TuneResult

NEAR_BEST = 0.9
UNSTEADY = 0.15
_CLIENT_FULL_PERCENT = 93.0


def QT_TR_NOOP(text: str) -> str:  # noqa: N802 - the name that translators' tools look for
    """Marks a sentence for translation; changes nothing."""
    return text


@dataclass(frozen=True, slots=True)
class Finding:
    """A sentence and its values; ``warning`` where something needs attention."""

    text: str
    values: dict[str, object] = field(default_factory=dict)
    warning: bool = False

    def __str__(self) -> str:
        return self.text.format_map(self.values)


_ROUTER = QT_TR_NOOP("The router answers {rate} requests a second with {n} at once; 99 of 100 within {p99}.")
_SWEET = QT_TR_NOOP(
    "{model}: {n} at once is a good load for this machine: {rate} tokens a second, first token in {ttft}."
)
_NO_GAIN = QT_TR_NOOP("{model}: more than {n} at once only makes requests wait longer; throughput hardly grows.")
_ROOM = QT_TR_NOOP("{model}: throughput still grows at {n} at once; measure more at once to find its limit.")
_SHARE = QT_TR_NOOP("Routing takes {share} % of the time of a request to {model}.")
_FAILED = QT_TR_NOOP("{target}: {count} of {total} requests failed with {n} at once: {why}")
_PROBLEM = QT_TR_NOOP("{target} could not be measured: {why}")
_CLIENT = QT_TR_NOOP(
    "With {n} at once the client itself was at its limit; the router could do more than the figure says."
)
_SLOTS = QT_TR_NOOP(
    "{model} has {slots} slots: from {n} at once on, requests wait for a slot. Tune finds out whether more help."
)
_TUNED = QT_TR_NOOP("batch_size {batch}, num_worker {threads}: {gain} % tokens a second with {n} at once.")
_TUNED_NEW = QT_TR_NOOP(
    "batch_size {batch}, num_worker {threads} works here; the present setting could not be measured."
)
_TUNED_SAME = QT_TR_NOOP("The present setting is as good as any that was measured with {n} at once.")
_TUNED_NONE = QT_TR_NOOP("No setting could be measured: {why}")

_UNSTEADY = QT_TR_NOOP(
    "The present setting differed by {share} % when it was measured again: other programs were busy. Tune once more "
    "when the machine is quiet."
)
_FIRST = (_ROUTER, _SWEET)
"""What is said before the rest."""


def findings(result: BenchResult) -> tuple[Finding, ...]:
    """The recommendation for a run, most important first."""
    found: list[Finding] = []
    for series in result.series:
        found += _problems(series)
        if series.scenario is Scenario.ROUTING:
            found += _router(series)
        else:
            found += _model(series)
    return tuple(sorted(found, key=lambda f: (not f.warning, f.text not in _FIRST)))


def tune_findings(result: TuneResult) -> tuple[Finding, ...]:
    """The recommendation of Tune."""
    found = _tuned(result)
    if found and result.drift is not None and result.drift > UNSTEADY:
        found.append(Finding(_UNSTEADY, {"share": f"{result.drift * 100:.0f}"}, warning=True))
    return tuple(found)


def _tuned(result: TuneResult) -> list[Finding]:
    if result.best is not None:
        values: dict[str, object] = {
            "batch": result.best.batch_size,
            "threads": result.best.num_worker,
            "n": result.concurrency,
        }
        if result.gain is None:
            return [Finding(_TUNED_NEW, values)]
        return [Finding(_TUNED, {**values, "gain": f"{result.gain * 100:+.0f}"})]
    if any(t.point for t in result.trials):
        return [Finding(_TUNED_SAME, {"n": result.concurrency})]
    why = next((t.problem for t in result.trials if t.problem), "") or ""
    return [Finding(_TUNED_NONE, {"why": why}, warning=True)] if result.trials else []


def _problems(series: Series) -> list[Finding]:
    found = []
    if series.problem:
        found.append(Finding(_PROBLEM, {"target": series.target, "why": series.problem}, warning=True))
    for point in series.points:
        if point.faults:
            fault = point.faults[0]
            total = point.requests + point.failed
            values = {"target": series.target, "count": point.failed, "total": total, "n": point.concurrency}
            found.append(Finding(_FAILED, {**values, "why": fault.text or fault.code}, warning=True))
    return found


def _router(series: Series) -> list[Finding]:
    best = max(series.points, key=lambda p: p.requests_per_s, default=None)
    if best is None or best.latency_ms is None:
        return []
    rate = f"{best.requests_per_s:,.0f}"
    found = [Finding(_ROUTER, {"rate": rate, "n": best.concurrency, "p99": _ms(best.latency_ms.p99)})]
    if (best.client_cpu_percent or 0) >= _CLIENT_FULL_PERCENT:
        found.append(Finding(_CLIENT, {"n": best.concurrency}))
    return found


def _model(series: Series) -> list[Finding]:
    rated = [(p, p.tokens_per_s) for p in series.points if p.tokens_per_s]
    if not rated:
        return []
    top = max(rate for _, rate in rated)
    sweet, rate = next((p, r) for p, r in rated if r >= top * NEAR_BEST)
    ttft = _ms(sweet.ttft_ms.p50) if sweet.ttft_ms else "–"
    found = [
        Finding(_SWEET, {"model": series.target, "n": sweet.concurrency, "rate": f"{rate:,.0f}", "ttft": ttft}),
    ]
    last = rated[-1][0]
    if len(rated) > 1:
        text = _ROOM if sweet is last else _NO_GAIN
        found.append(Finding(text, {"model": series.target, "n": sweet.concurrency}))
    slots = series.settings.get("batch_size", "")
    if slots.isdigit() and last.concurrency > int(slots) and sweet is not last:
        values = {"model": series.target, "slots": slots, "n": int(slots) + 1}
        found.append(Finding(_SLOTS, values))
    if sweet.routing_us and sweet.latency_ms:
        share = sweet.routing_us.p50 / 1e3 / max(sweet.latency_ms.p50, 1e-6) * 100
        found.append(Finding(_SHARE, {"share": f"{share:.2g}" if share >= 0.01 else "<0.01", "model": series.target}))
    return found


def _ms(value_ms: float) -> str:
    if value_ms < 1:
        return f"{value_ms * 1000:.0f} µs"
    return f"{value_ms:.0f} ms" if value_ms < 1000 else f"{value_ms / 1000:.1f} s"
