"""What the helper process is asked to do and what it says meanwhile: one JSON line each. Values only; any thread."""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path

import msgspec

import laya_desktop
from laya_desktop.bench.results import BenchResult, Point, Scenario, Trial, TuneResult
from laya_desktop.errors import LayaError

HELPER_FLAG = "--laya-bench"
LEVELS_MOST, LEVEL_MOST = 12, 512
REQUESTS_MOST, TOKENS_MOST = 1_000_000, 100_000


class Part(msgspec.Struct, frozen=True, tag=True):
    """One scenario of a run. ``path`` and ``model`` say what is asked."""

    scenario: Scenario
    target: str
    path: str = "/v1/chat/completions"
    settings: dict[str, str] = {}


class RunJob(msgspec.Struct, frozen=True, tag="run"):
    """Measure a running node."""

    url: str
    parts: tuple[Part, ...]
    concurrency: tuple[int, ...] = (1, 2, 4, 8)
    requests: int = 32
    """To a model at each level, at most; the router gets ``routing_requests``."""
    routing_requests: int = 20_000
    seconds: float = 20.0
    """At most, for each level."""
    prompt_tokens: int = 64
    max_tokens: int = 64
    rate_per_s: float | None = None
    """Of the pure routing scenario; None: the next request follows the answer."""
    api_key: str = ""
    watch_pid: int | None = None
    """Whose (and whose children's) memory and CPU are measured."""


class TuneJob(msgspec.Struct, frozen=True, tag="tune"):
    """Measure settings of one model on nodes of its own."""

    model: str
    config: str
    """A whole configuration with absolute paths and this model alone, as YAML."""
    concurrency: int = 8
    requests: int = 32
    seconds: float = 8.0
    prompt_tokens: int = 64
    max_tokens: int = 64


class Progress(msgspec.Struct, frozen=True, tag="progress"):
    """How far it is. ``stage``: loading, measuring; ``done`` of ``total`` levels or settings, plus a part of one."""

    stage: str
    target: str
    level: str
    done: float
    total: int


class Measured(msgspec.Struct, frozen=True, tag="measured"):
    """One more level of a run."""

    scenario: Scenario
    point: Point


class Tried(msgspec.Struct, frozen=True, tag="tried"):
    """One more setting of Tune."""

    trial: Trial


class Finished(msgspec.Struct, frozen=True, tag="finished"):
    """The end of a run."""

    result: BenchResult


class Tuned(msgspec.Struct, frozen=True, tag="tuned"):
    """The end of Tune."""

    result: TuneResult


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """There is no result: why, and what next."""

    text: str


Job = RunJob | TuneJob
Message = Progress | Measured | Tried | Finished | Tuned | Failed

_encode = msgspec.json.Encoder().encode
_job = msgspec.json.Decoder(Job)
_message = msgspec.json.Decoder(Message)


def line(value: Job | Message) -> bytes:
    """As one line."""
    return _encode(value) + b"\n"


def read_job(text: bytes) -> Job:
    """The inverse of ``line``. Raises msgspec.DecodeError."""
    return _job.decode(text)


def read_message(text: bytes) -> Message:
    """The inverse of ``line``. Raises msgspec.DecodeError."""
    return _message.decode(text)


def helper_command() -> list[str]:
    """How to start the helper: this interpreter, or this executable with a flag where it is a frozen build."""
    if getattr(sys, "frozen", False):
        return [sys.executable, HELPER_FLAG]
    return [sys.executable, "-P", "-m", "laya_desktop", HELPER_FLAG]


def node_command(config: Path) -> list[str]:
    """How to start a node without a window on a configuration."""
    frozen = getattr(sys, "frozen", False)
    return [*([sys.executable] if frozen else [sys.executable, "-P", "-m", "laya_desktop"]), "serve", str(config)]


def helper_environment() -> dict[str, str]:
    """Our environment; a checkout that is not installed is put on the import path."""
    env = dict(os.environ)
    root = str(Path(laya_desktop.__file__).resolve().parents[1])
    if not getattr(sys, "frozen", False) and root not in (sysconfig.get_path("purelib"), sysconfig.get_path("platlib")):
        env["PYTHONPATH"] = os.pathsep.join(filter(None, (root, env.get("PYTHONPATH"))))
    return env


def parse_levels(text: str) -> tuple[int, ...]:
    """``1, 2, 4`` as numbers in rising order, without doubles.

    Raises:
        LayaError: something else is written, or too many or too large ones.
    """
    words = [w for w in text.replace(",", " ").split() if w]
    hint = f"Write up to {LEVELS_MOST} numbers from 1 to {LEVEL_MOST}, e.g. 1, 2, 4, 8."
    wrong = next((w for w in words if not (w.isascii() and w.isdigit()) or not 1 <= int(w) <= LEVEL_MOST), None)
    if wrong is not None:
        raise LayaError(f"'{wrong}' is not a number of requests at once.", hint=hint, code="bad_levels", status=400)
    levels = tuple(sorted({int(w) for w in words}))
    if not 1 <= len(levels) <= LEVELS_MOST:
        raise LayaError(f"There are {len(levels)} levels.", hint=hint, code="bad_levels", status=400)
    return levels
