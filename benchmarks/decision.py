"""How long one routing decision takes, for 10 to 100,000 routes; beside Starlette's router where it is installed.

    python -m benchmarks.decision [--json] [--seconds 0.15] [--routes 10 1000 10000 100000]

Requests are drawn in two ways. *Hot*: sixteen routes get all the traffic, wherever in the table they lie: what the
decision itself costs. *Even*: every route is as likely as every other, so that at 100,000 routes hardly any is in the
processor's caches; what that costs more is what it costs a plain dictionary of that size (the last rows).

Each reading times a batch of 64 requests; reported are the median and the 99th percentile of the time per decision.
The cases of one kind take turns, so that a busy minute on the machine strikes all of them. Nothing is cached by
request. The garbage collector is on, but told to leave the finished tables alone (``gc.freeze``): its passes over
100,000 routes would blur the readings.
"""

from __future__ import annotations

import argparse
import gc
import json
import platform
import random
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from laya_desktop.config.schema import MatchConfig, ModelConfig, NodeConfig, RouteConfig
from laya_desktop.node.routing import Decision, RoutingTable

BATCH = 64
HOT = 16
HEADERS = {
    "host": "127.0.0.1:5292",
    "user-agent": "bench/1.0",
    "accept": "*/*",
    "content-type": "application/json",
    "content-length": "120",
    "x-request-id": "0f8a",
}

Call = Callable[[], object]


@dataclass(frozen=True)
class Result:
    """One line of the table."""

    router: str
    kind: str
    routes: int
    hot_median_us: float
    hot_p99_us: float
    even_median_us: float
    even_p99_us: float
    build_s: float


@dataclass
class Case:
    """One table and how to ask it for its i-th route."""

    router: str
    kind: str
    routes: int
    build_s: float
    batch: Callable[[list[int]], Callable[[], None]]
    hot: list[float] = field(default_factory=list)
    even: list[float] = field(default_factory=list)


def match_of(kind: str, i: int) -> MatchConfig:
    """The i-th rule of a kind."""
    if kind == "exact":
        return MatchConfig(path=f"/t{i}/chat/completions")
    if kind == "prefix":
        return MatchConfig(prefix=f"/t{i}/model")
    if kind == "header":
        return MatchConfig(prefix="/v1/model", headers={"X-Tenant": f"tenant-{i}"})
    return MatchConfig(prefix="/v1/model", model=f"model-{i}")


def request_of(kind: str, i: int) -> tuple[str, dict[str, str], str | None]:
    """Path, headers and model that the i-th rule of a kind takes."""
    if kind == "exact":
        return f"/t{i}/chat/completions", HEADERS, None
    if kind == "prefix":
        return f"/t{i}/model/chat/completions", HEADERS, None
    if kind == "header":
        return "/v1/model/chat/completions", {**HEADERS, "x-tenant": f"tenant-{i}"}, None
    return "/v1/model/chat/completions", HEADERS, f"model-{i}"


def laya_case(kind: str, routes: int) -> Case:
    """A table of ours."""
    config = NodeConfig(
        models=(ModelConfig(name="m", path="/data/m.gguf"),),
        routes=tuple(RouteConfig(name=f"r{i}", match=match_of(kind, i), target="m") for i in range(routes)),
    )
    started = time.perf_counter()
    table = RoutingTable.compile(config)
    build_s = time.perf_counter() - started
    last = table.decide("POST", *_arguments(kind, routes - 1))
    assert isinstance(last, Decision), "the benchmark's own request found no route"
    assert last.route.name == f"r{routes - 1}"

    def batch(picks: list[int]) -> Callable[[], None]:
        requests = [_arguments(kind, i) for i in picks]
        decide = table.decide

        def run() -> None:
            for path, host, headers, model in requests:
                decide("POST", path, host, headers, model)

        return run

    return Case("laya", kind, routes, build_s, batch)


def _arguments(kind: str, i: int) -> tuple[str, str, dict[str, str], str | None]:
    path, headers, model = request_of(kind, i)
    return path, headers["host"], headers, model


def starlette_case(kind: str, routes: int) -> Case | None:
    """Starlette's router, which asks its routes one by one; it knows paths only."""
    try:
        from starlette.routing import Match, Mount, Route, Router
    except ImportError:
        return None

    async def endpoint(*_: Any) -> None:
        """Never called: only the match is timed."""

    def one(i: int) -> Any:
        return Route(f"/t{i}/chat/completions", endpoint) if kind == "exact" else Mount(f"/t{i}/model", endpoint)

    started = time.perf_counter()
    router = Router([one(i) for i in range(routes)])
    build_s = time.perf_counter() - started

    def batch(picks: list[int]) -> Callable[[], None]:
        scopes = [
            {"type": "http", "method": "GET", "path": request_of(kind, i)[0], "root_path": "", "headers": []}
            for i in picks
        ]

        def run() -> None:
            for scope in scopes:
                next(route for route in router.routes if route.matches(scope)[0] is Match.FULL)

        return run

    return Case("starlette", kind, routes, build_s, batch)


def dictionary_case(routes: int) -> Case:
    """The floor: one look-up in a dictionary of that many paths."""
    started = time.perf_counter()
    table = {request_of("exact", i)[0]: i for i in range(routes)}
    build_s = time.perf_counter() - started

    def batch(picks: list[int]) -> Callable[[], None]:
        paths = [request_of("exact", i)[0] for i in picks]

        def run() -> None:
            for path in paths:
                table.get(path)

        return run

    return Case("dict.get", "exact", routes, build_s, batch)


def measure(cases: list[Case], seconds: float) -> None:
    """Take readings from the cases in turns, at least three of each kind, until each case had its time."""
    rng = random.Random(7)
    gc.collect()
    gc.freeze()
    popular = [[rng.randrange(case.routes) for _ in range(HOT)] for case in cases]
    spent = dict.fromkeys(range(len(cases)), 0.0)
    while any(spent[n] < seconds or len(case.even) < 3 for n, case in enumerate(cases)):
        for n, case in enumerate(cases):
            if spent[n] >= seconds and len(case.even) >= 3:
                continue
            for routes, readings in ((popular[n], case.hot), (range(case.routes), case.even)):
                run = case.batch(rng.choices(routes, k=BATCH))
                started = time.perf_counter_ns()
                run()
                taken_ns = time.perf_counter_ns() - started
                spent[n] += taken_ns / 1e9
                readings.append(taken_ns / BATCH / 1000)


def result_of(case: Case) -> Result:
    """The figures of a case."""
    hot, even = (statistics.quantiles(readings, n=100) for readings in (case.hot, case.even))
    return Result(case.router, case.kind, case.routes, hot[49], hot[98], even[49], even[98], case.build_s)


def run(sizes: list[int], seconds: float) -> tuple[list[Result], list[str]]:
    """All results, and what was left out with the reason."""
    results: list[Result] = []
    notes: list[str] = []
    for kind in ("exact", "prefix", "header", "model"):
        cases = [laya_case(kind, n) for n in sizes]
        measure(cases, seconds)
        results += map(result_of, cases)
    for kind in ("exact", "prefix"):
        peers = [starlette_case(kind, n) for n in sizes if n <= 1000]
        found = [case for case in peers if case is not None]
        if not found:
            notes.append(
                "Starlette is not installed, so it was left out. Install it beside this: pip install starlette"
            )
            break
        measure(found, seconds)
        results += map(result_of, found)
        notes.append(f"Starlette ({kind}): up to 1,000 routes only; its cost grows with their number.")
    floor = [dictionary_case(n) for n in sizes]
    measure(floor, seconds)
    return results + [result_of(case) for case in floor], notes


def render(results: list[Result]) -> str:
    """The table for people."""
    lines = [
        f"{'':<27} {'-------- hot ---------':>24} {'-------- even --------':>24}",
        f"{'router':<10} {'rules':<7} {'routes':>8}"
        + f" {'median µs':>10} {'p99':>6} {'×':>6}" * 2
        + f" {'build s':>8}",
    ]
    first: dict[tuple[str, str], Result] = {}
    for r in results:
        base = first.setdefault((r.router, r.kind), r)
        lines.append(
            f"{r.router:<10} {r.kind:<7} {r.routes:>8,}"
            f" {r.hot_median_us:>10.2f} {r.hot_p99_us:>6.2f} {r.hot_median_us / base.hot_median_us:>6.2f}"
            f" {r.even_median_us:>10.2f} {r.even_p99_us:>6.2f} {r.even_median_us / base.even_median_us:>6.2f}"
            f" {r.build_s:>8.2f}"
        )
    return "\n".join(lines)


def main() -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--seconds", type=float, default=0.15, help="time per case")
    parser.add_argument("--routes", type=int, nargs="+", default=[10, 1000, 10_000, 100_000])
    options = parser.parse_args()
    results, notes = run(options.routes, options.seconds)
    if options.json:
        machine = {"python": platform.python_version(), "system": platform.system(), "machine": platform.machine()}
        print(json.dumps({"machine": machine, "notes": notes, "results": [asdict(r) for r in results]}, indent=2))
    else:
        print(render(results))
        print(*notes, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
