"""Which settings of a model give the most tokens per second here: a grid, measured on private nodes. No Qt.

``grid`` and ``choose`` are pure. Each setting is loaded afresh in a process of its own, behind the same guard and the
same estimate as everywhere: what does not fit is refused there and shows as a trial with that reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from laya_desktop.bench.jobs import LEVEL_MOST, Part, Progress, RunJob, Tried, TuneJob
from laya_desktop.bench.load import Server
from laya_desktop.bench.private_node import private_node
from laya_desktop.bench.results import Scenario, Setting, Trial, TuneResult
from laya_desktop.bench.run import Say, measure_level, prepare
from laya_desktop.config.loader import load_text
from laya_desktop.config.paths import absolute_paths
from laya_desktop.config.render import fresh
from laya_desktop.config.schema import ModelConfig, NodeConfig, ServerConfig
from laya_desktop.errors import LayaError

BATCHES = (1, 2, 4, 8, 16)
SETTINGS_MOST = 16
WORTH_IT = 0.03
"""Gains below are within what two runs of the same setting differ by; among equals the smaller setting is taken."""


def auto_threads(cores: int) -> int:
    """What ``num_worker: auto`` stands for."""
    return max(1, cores - 1 if cores > 2 else cores)


def present_setting(model: ModelConfig, cores: int) -> Setting:
    """The model's settings in numbers."""
    threads = model.num_worker if isinstance(model.num_worker, int) else auto_threads(cores)
    return Setting(model.batch_size, threads)


def grid(present: Setting, cores: int, concurrency: int) -> tuple[Setting, ...]:
    """What to try: the present setting, then the others from small to large.

    More slots than requests at once cannot help, and more threads than physical cores do not: both are left out.
    """
    threads = sorted({max(1, cores // 2), max(1, cores - 1), cores, present.num_worker})
    enough = next((b for b in BATCHES if b >= concurrency), BATCHES[-1])
    batches = sorted({*(b for b in BATCHES if b <= enough), present.batch_size})
    rest = [s for b in batches for t in threads if (s := Setting(b, t)) != present]
    return (present, *rest[: SETTINGS_MOST - 1])


def choose(trials: Sequence[Trial]) -> tuple[Setting | None, float | None]:
    """The best setting and its gain over the first (present) one; None where nothing is better by ``WORTH_IT``.

    Among settings within ``WORTH_IT`` of the best, the one with the fewest slots and threads: they cost memory.
    """
    measured = [(t, rate) for t in trials if (rate := t.tokens_per_s)]
    if not measured:
        return None, None
    top = max(rate for _, rate in measured)
    near = [(t, rate) for t, rate in measured if rate >= top * (1 - WORTH_IT)]
    best, best_rate = min(near, key=lambda pair: (pair[0].setting.batch_size, pair[0].setting.num_worker))
    now = trials[0].tokens_per_s
    if now is None:  # the present setting does not even load
        return best.setting, None
    gain = best_rate / now - 1
    return (best.setting, round(gain, 4)) if gain >= WORTH_IT and best is not trials[0] else (None, None)


def job_for(config: NodeConfig, folder: Path | None, name: str, **figures: float) -> TuneJob:
    """The job for a model of a configuration that lies in ``folder``.

    Raises:
        LayaError: there is no such model.
    """
    model = config.model(name)
    if model is None:
        raise LayaError(f"There is no model '{name}'.", code="model_not_found", status=404)
    plain = model.model_copy(
        update={
            "preload": False,
            "replicas": 1,
            "aliases": (),
            "cache": model.cache.model_copy(update={"enabled": False}),
        }
    )
    alone = NodeConfig(server=ServerConfig(port=0), guard=config.guard, models=(plain,))
    return TuneJob(model=name, config=fresh(absolute_paths(alone, folder)), **figures)  # type: ignore[arg-type]


def with_setting(config: NodeConfig, name: str, setting: Setting) -> NodeConfig:
    """The configuration with that setting of a model."""
    model = config.model(name)
    assert model is not None
    queue = model.queue.model_copy(
        update={"max_waiting": max(model.queue.max_waiting, LEVEL_MOST), "max_prompt_tokens": None}
    )
    update = {"batch_size": setting.batch_size, "num_worker": setting.num_worker, "queue": queue}
    return config.model_copy(update={"models": (model.model_copy(update=update),)})


async def tune(job: TuneJob, cores: int, say: Say) -> TuneResult:
    """Measure the whole grid, one setting after the other."""
    config = load_text(job.config)
    model = config.model(job.model)
    assert model is not None
    settings = grid(present_setting(model, cores), cores, job.concurrency)
    trials: list[Trial] = []
    for number, setting in enumerate((*settings, settings[0])):  # the present one again: does the machine keep still?
        level = f"{setting.batch_size}×{setting.num_worker}"
        say(Progress("measuring", job.model, level, float(number), len(settings) + 1))
        trials.append(await _try(job, fresh(with_setting(config, job.model, setting)), setting))
        if number < len(settings):
            say(Tried(trials[-1]))
    return conclude(job.model, job.concurrency, trials[:-1], again=trials[-1])


def conclude(model: str, concurrency: int, trials: Sequence[Trial], again: Trial) -> TuneResult:
    """The result, from all trials and a second one of the first setting, of which the better one counts."""
    first, second = trials[0].tokens_per_s, again.tokens_per_s
    drift = round(abs(second / first - 1), 4) if first and second else None
    counted = (again if (second or 0) > (first or 0) else trials[0], *trials[1:])
    best, gain = choose(counted)
    return TuneResult(model, concurrency, counted, best, gain, drift)


async def _try(job: TuneJob, config: str, setting: Setting) -> Trial:
    part = Part(Scenario.SMALL, job.model)
    try:
        async with private_node(config) as node:
            plan = RunJob(
                url=node.url,
                parts=(part,),
                requests=job.requests,
                seconds=job.seconds,
                prompt_tokens=job.prompt_tokens,
                max_tokens=job.max_tokens,
                watch_pid=node.pid,
            )
            server = Server.parse(node.url)
            make = await prepare(server, part, plan, lambda _stage: None)
            point = await measure_level(server, make, part, job.concurrency, plan)
    except LayaError as fault:
        return Trial(setting, problem=str(fault))
    problem = None if point.requests else (point.faults[0].text if point.faults else "Nothing was answered.")
    return Trial(setting, point if point.requests else None, problem)
