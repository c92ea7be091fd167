"""``laya-desktop bench``: loads a node over HTTP and prints what it measured. Composes node, helper process and tables.

The node runs in this process without a window unless ``--url`` names another one; the load comes from the helper
process. Ctrl-C cancels: the helper hangs up, the node is closed, and what was measured so far is not saved.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from laya_desktop import app
from laya_desktop.bench import advice, choice, jobs, tune
from laya_desktop.bench.jobs import Failed, Finished, Job, Message, Part, Progress, RunJob, Tried, Tuned
from laya_desktop.bench.results import BenchResult, Point, Quantiles, Scenario, Series, Trial, TuneResult
from laya_desktop.bench.store import ResultStore
from laya_desktop.config.schema import NodeConfig
from laya_desktop.config.store import ConfigDocument, load_file
from laya_desktop.errors import LayaError
from laya_desktop.gui import format as fmt
from laya_desktop.node.parts import Overrides

CANCELLED = 130
_END_LIMIT_S = 20.0


@dataclass(frozen=True, slots=True)
class Wanted:
    """The arguments. None: the default of its kind."""

    config: Path | None
    url: str | None = None
    scenario: str = "all"
    model: str | None = None
    concurrency: tuple[int, ...] = (1, 2, 4, 8)
    requests: int | None = None
    seconds: float | None = None
    prompt_tokens: int = 64
    max_tokens: int = 64
    rate_per_s: float | None = None
    api_key: str = ""
    tune: str | None = None
    json: bool = False
    save: bool = False


def bench(wanted: Wanted, say: Callable[[str], None], out: Callable[[str], None]) -> int:
    """Run it. ``say`` gets progress, ``out`` the result. 0: all answered; 1: something failed; 130: cancelled.

    Raises:
        LayaError: nothing could be measured.
    """
    document = load_file(wanted.config) if wanted.config is not None else None
    try:
        if wanted.tune is not None:
            return _tune(wanted, document, say, out)
        with _node(wanted, document) as (url, pid):
            job = _run_job(wanted, document, url, pid)
            last = run_helper(job, lambda message: _tell(message, say))
    except KeyboardInterrupt:
        say("Cancelled.")
        return CANCELLED
    assert isinstance(last, Finished)
    result = last.result
    out(msgspec.json.encode(result).decode() if wanted.json else describe(result))
    if wanted.save:
        say(f"Saved as {ResultStore().save(result)}.")
    bad = any(s.problem or any(p.failed for p in s.points) for s in result.series)
    return 1 if bad else 0


def _tune(
    wanted: Wanted, document: ConfigDocument | None, say: Callable[[str], None], out: Callable[[str], None]
) -> int:
    if document is None or wanted.tune is None:
        raise LayaError("Tune needs a configuration.", hint="Write: laya-desktop bench CONFIG --tune MODEL.")
    job = tune.job_for(document.config, document.folder, wanted.tune, concurrency=max(wanted.concurrency))
    given = {"requests": wanted.requests, "seconds": wanted.seconds}
    job = msgspec.structs.replace(
        job,
        prompt_tokens=wanted.prompt_tokens,
        max_tokens=wanted.max_tokens,
        **{k: v for k, v in given.items() if v is not None},
    )
    last = run_helper(job, lambda message: _tell(message, say))
    assert isinstance(last, Tuned)
    out(msgspec.json.encode(last.result).decode() if wanted.json else describe_tune(last.result))
    return 0 if any(t.point for t in last.result.trials) else 1


def run_helper(job: Job, tell: Callable[[Message], None]) -> Finished | Tuned:
    """Run a job in the helper process; its last message.

    Raises:
        LayaError: it failed.
        KeyboardInterrupt: the user did not want to wait; the helper is gone by then.
    """
    last: Message | None = None
    with subprocess.Popen(
        jobs.helper_command(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=jobs.helper_environment(),
        start_new_session=True,  # Ctrl-C reaches us alone; we end it by closing its input
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(jobs.line(job))
            process.stdin.flush()
            for text in process.stdout:
                last = jobs.read_message(text)
                tell(last)
        except BrokenPipeError:
            pass
        finally:
            process.stdin.close()
            try:
                process.wait(_END_LIMIT_S)
            except subprocess.TimeoutExpired:
                process.kill()
    if isinstance(last, Finished | Tuned):
        return last
    if isinstance(last, Failed):
        raise LayaError(last.text, code="bench_failed")
    raise LayaError(
        f"The process that measures ended unexpectedly with exit code {process.returncode}.", code="bench_failed"
    )


@contextmanager
def _node(wanted: Wanted, document: ConfigDocument | None) -> Iterator[tuple[str, int | None]]:
    """Address and process of the node to measure: a running one, or our own for as long as it takes."""
    if wanted.url is not None:
        yield wanted.url, None
        return
    assert document is not None
    session = app.open_session(document, Overrides(host="127.0.0.1", port=0), console=False)
    try:
        session.service.start_node().result(10)
        yield app.address(session), os.getpid()
    finally:
        session.close()


def _run_job(wanted: Wanted, document: ConfigDocument | None, url: str, pid: int | None) -> RunJob:
    config, folder = (document.config, document.folder) if document else (None, None)
    job = RunJob(
        url=url,
        parts=parts(wanted, config, folder),
        concurrency=wanted.concurrency,
        prompt_tokens=wanted.prompt_tokens,
        max_tokens=wanted.max_tokens,
        rate_per_s=wanted.rate_per_s,
        api_key=wanted.api_key,
        watch_pid=pid,
    )
    if wanted.requests is not None:
        routing = max(wanted.requests, 1) if wanted.scenario == "routing" else job.routing_requests
        job = msgspec.structs.replace(job, requests=wanted.requests, routing_requests=routing)
    return job if wanted.seconds is None else msgspec.structs.replace(job, seconds=wanted.seconds)


def parts(wanted: Wanted, config: NodeConfig | None, folder: Path | None) -> tuple[Part, ...]:
    """The scenarios to run. "All" leaves the larger model out where there is only one.

    Raises:
        LayaError: a model is needed and there is none.
    """
    names = choice.by_size(config, folder) if config is not None else ()
    kinds = list(Scenario) if wanted.scenario == "all" else [Scenario(wanted.scenario)]
    if wanted.scenario == "all" and len(names) < 2:
        kinds.remove(Scenario.LARGE)
        if not names and wanted.model is None:
            kinds.remove(Scenario.SMALL)
    found = []
    for kind in kinds:
        usual = "" if not names else names[-1] if kind is Scenario.LARGE else names[0]
        chosen = wanted.model or usual if len(kinds) == 1 or kind is not Scenario.SMALL or len(names) < 2 else usual
        if kind is not Scenario.ROUTING and not chosen:
            raise LayaError(
                "There is no model to measure.", hint="Name one with --model, or add one to the configuration."
            )
        found.append(choice.part(config, kind, chosen))
    return tuple(found)


def _tell(message: Message, say: Callable[[str], None]) -> None:
    if isinstance(message, Progress):
        level = f", {message.level} at once" if message.level and "×" not in message.level else ""
        slots, _, threads = message.level.partition("×")
        level = f", batch_size {slots}, num_worker {threads}" if threads else level
        say(f"[{message.done + 1:.0f}/{message.total}] {message.stage} {message.target}{level} …")
    elif isinstance(message, Tried):
        say(f"      {_trial(message.trial)}")


def describe(result: BenchResult) -> str:
    """A result as text for a terminal."""
    blocks = [_series(series) for series in result.series]
    words = [f"{'!' if f.warning else '•'} {f}" for f in advice.findings(result)]
    return "\n\n".join([*blocks, "\n".join(words)]).rstrip()


_HEAD = ("at once", "answered", "failed", "req/s", "tokens/s", "p50", "p95", "p99", "TTFT p50", "TTFT p99", "ITL p50",
         "routing p99", "CPU", "RAM peak")  # fmt: skip


def _series(series: Series) -> str:
    rows = [_HEAD, *(_row(p) for p in series.points)]
    shown = [i for i in range(len(_HEAD)) if any(row[i] != fmt.NONE for row in rows[1:])]
    widths = {i: max(len(row[i]) for row in rows) for i in shown}
    name = {Scenario.ROUTING: "Routing alone", Scenario.SMALL: "Small model", Scenario.LARGE: "Larger model"}
    lines = ["  ".join(row[i].rjust(widths[i]) for i in shown) for row in rows] if series.points else []
    return "\n".join([f"{name[series.scenario]}: {series.target}", *lines])


def _row(point: Point) -> tuple[str, ...]:
    def time(value: Quantiles | None, rank: str) -> str:
        return fmt.NONE if value is None else fmt.micros(getattr(value, rank) * 1000)

    routing = fmt.NONE if point.routing_us is None else fmt.micros(point.routing_us.p99)
    return (
        str(point.concurrency), fmt.count(point.requests), fmt.count(point.failed), fmt.rate(point.requests_per_s, ""),
        fmt.rate(point.tokens_per_s, ""), *(time(point.latency_ms, q) for q in ("p50", "p95", "p99")),
        time(point.ttft_ms, "p50"), time(point.ttft_ms, "p99"), time(point.itl_ms, "p50"), routing,
        fmt.percent(point.cpu_percent), fmt.size(point.ram_peak_bytes),
    )  # fmt: skip


def describe_tune(result: TuneResult) -> str:
    """Tune's trials and its recommendation."""
    lines = [_trial(t) + ("  (now)" if i == 0 else "") for i, t in enumerate(result.trials)]
    return "\n".join(
        [f"{result.model}, {result.concurrency} at once", *lines, "", *map(str, advice.tune_findings(result))]
    )


def _trial(trial: Trial) -> str:
    name = f"batch_size {trial.setting.batch_size:>2}, num_worker {trial.setting.num_worker:>2}"
    if trial.point is None:
        return f"{name}: {trial.problem}"
    ttft = trial.point.ttft_ms
    first = f", first token {fmt.micros(ttft.p50 * 1000)}" if ttft else ""
    return f"{name}: {fmt.rate(trial.tokens_per_s)}{first}, {fmt.size(trial.point.ram_peak_bytes)}"


def tell_terminal(text: str) -> None:
    """Progress goes to standard error, so that the result can be piped."""
    print(text, file=sys.stderr, flush=True)  # noqa: T201


def with_key(wanted: Wanted) -> Wanted:
    """The key that callers present, from the environment: arguments are seen by everyone on the machine."""
    return replace(wanted, api_key=os.environ.get("LAYA_API_KEY", ""))


def levels(words: Sequence[str]) -> tuple[int, ...]:
    """``--concurrency``. Raises LayaError."""
    return jobs.parse_levels(" ".join(words))
