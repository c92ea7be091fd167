"""Measures a running node, scenario by scenario and level by level. The helper's event loop; says what it finds."""

from __future__ import annotations

import gc
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from laya_desktop.bench import figures, machine, prompts
from laya_desktop.bench.figures import Sample
from laya_desktop.bench.jobs import Measured, Message, Part, Progress, RunJob
from laya_desktop.bench.load import Load, Server
from laya_desktop.bench.results import BenchResult, Point, Scenario, Series
from laya_desktop.bench.usage import UsageWatch
from laya_desktop.errors import LayaError

Say = Callable[[Message], None]
LOAD_LIMIT_S = 900.0
"""For the first answer of a model that is not loaded yet."""
_PROBE_WORDS = 2
_ROUTING_WARM_UP = 300


async def run(job: RunJob, say: Say) -> BenchResult:
    """Measure everything the job asks for. A scenario that cannot be measured says so in its series.

    Raises:
        LayaError: nobody listens at the address, or it is none.
    """
    server = Server.parse(job.url)
    result = begin(job)
    total = len(job.parts) * len(job.concurrency)
    for number, part in enumerate(job.parts):
        done = number * len(job.concurrency)
        series = Series(part.scenario, part.target, settings=dict(part.settings))
        try:
            make = await prepare(server, part, job, partial(_say_stage, say, part, done, total))
            for level, concurrency in enumerate(job.concurrency):
                say(_stage("measuring", part, str(concurrency), done + level, total))
                point = await measure_level(server, make, part, concurrency, job)
                series = replace(series, points=(*series.points, point))
                say(Measured(part.scenario, point))
        except LayaError as fault:
            if fault.code == "unreachable" and not any(s.points for s in (*result.series, series)):
                raise
            series = replace(series, problem=str(fault))
        result = replace(result, series=(*result.series, series))
    return result


def begin(job: RunJob) -> BenchResult:
    """A result without figures."""
    return BenchResult(
        result_id=uuid.uuid4().hex[:12],
        created_unix_s=round(time.time(), 3),
        machine=machine.describe(),
        versions=machine.versions(),
        prompt_tokens=job.prompt_tokens,
        max_tokens=job.max_tokens,
        requests=job.requests,
        rate_per_s=job.rate_per_s,
    )


async def prepare(server: Server, part: Part, job: RunJob, say: Callable[[str], None]) -> Callable[[int], bytes]:
    """Warm up (a model is loaded by it) and find how many words make the prompt; gives the maker of requests.

    Raises:
        LayaError: the node refused, e.g. because the model does not fit or the guard sheds load.
    """
    if part.scenario is Scenario.ROUTING:
        request = server.request("GET", part.path, None, job.api_key)
        await _ask(server, request, _ROUTING_WARM_UP, 5.0)
        return lambda _number: request

    def chat(count: int, number: int, max_tokens: int) -> bytes:
        text = prompts.words(count, number)
        return server.request("POST", part.path, prompts.body(part.target, text, max_tokens), job.api_key)

    say("loading")
    few = await _ask(server, chat(_PROBE_WORDS, -1, 1), 1, LOAD_LIMIT_S)
    count = max(job.prompt_tokens, _PROBE_WORDS + 1)
    many = await _ask(server, chat(count, -2, 2), 1, LOAD_LIMIT_S)
    if few.prompt_tokens and many.prompt_tokens:
        count = prompts.fit(job.prompt_tokens, (_PROBE_WORDS, few.prompt_tokens), (count, many.prompt_tokens))
    seed = time.time_ns()
    return lambda number: chat(count, seed + number, job.max_tokens)


async def measure_level(
    server: Server, make: Callable[[int], bytes], part: Part, concurrency: int, job: RunJob
) -> Point:
    """One level."""
    routing = part.scenario is Scenario.ROUTING
    load = Load(
        server,
        make,
        total=job.routing_requests if routing else job.requests,
        concurrency=concurrency,
        seconds=job.seconds,
        rate_per_s=job.rate_per_s if routing else None,
    )
    usage = UsageWatch(job.watch_pid)
    gc.collect()
    gc.disable()  # a collection in the middle would look like a slow answer
    usage.start()
    try:
        duration_s = await load.run()
    finally:
        usage.stop()
        gc.enable()
    return replace(
        figures.point(concurrency, load.samples, duration_s),
        cpu_percent=usage.cpu_percent,
        ram_peak_bytes=usage.ram_peak_bytes,
        client_cpu_percent=usage.client_cpu_percent,
    )


async def _ask(server: Server, request: bytes, times: int, seconds: float) -> Sample:
    """The last of so many equal requests, one after the other. Raises LayaError where it failed."""
    load = Load(server, lambda _number: request, total=times, concurrency=1, seconds=seconds)
    await load.run()
    sample = load.samples[-1] if load.samples else Sample(0.0, code="cut_off", text="No answer in time.")
    if not sample.ok:
        status = "No answer" if sample.status is None else f"Answered with {sample.status}"
        hint = "Check the API key." if sample.status == 401 else None
        raise LayaError(
            f"{status} ({sample.code}): {sample.text}".rstrip(": "), hint=hint, code=sample.code or "bad_answer"
        )
    return sample


def _say_stage(say: Say, part: Part, done: int, total: int, stage: str) -> None:
    say(_stage(stage, part, "", done, total))


def _stage(stage: str, part: Part, level: str, done: int, total: int) -> Progress:
    return Progress(stage, part.target, level, float(done), total)
