"""Laya as a proxy to nginx beside nginx as a proxy to itself: whole answers, streamed answers, and LiteLLM's proxy.

    python -m benchmarks.proxy --ratebench PATH [--litellm VENV] [--json FILE] [--rate 2000] [--seconds 2] [--rounds 5]

Three measurements, each with the contestants taking turns (A B A B …) in one run; compare ratios, not absolute figures.

- *whole*: chat requests at a fixed rate to an nginx that answers at once (``return 200``); latency from the moment a
  request was due. One nginx is the server behind both proxies and is itself the second proxy.
- *streamed*: an origin written here sends an event on each of many streams every 20 ms; measured is the time from the
  origin's write to the client's read, of every event, directly and through each proxy.
- *throughput*: as many chat requests as each proxy answers on 16 connections (``--litellm`` names a virtual environment
  with ``litellm[proxy]``).

``--ratebench`` names the load generator of ``benchmarks.http_rate``. POSIX only; needs nginx.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import signal
import statistics
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks import streams
from benchmarks.http_rate import (
    ROOT,
    Contestant,
    Measure,
    free_port,
    print_table,
    server,
    summary,
    take_turns,
    with_ratebench,
)

CHAT_PATH = "/v1/chat/completions"
ANSWER = json.dumps(
    {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": "A few words."}, "finish_reason": "stop"},
        ],
        "usage": {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13},
    }
)
BODY = json.dumps({"model": "m", "messages": [{"role": "user", "content": "Say a few words about the sea."}]})
NGINX_CONF = """\
worker_processes 1;
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    keepalive_requests 10000000;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    upstream back {{ server 127.0.0.1:{back}; keepalive 64; }}
    upstream origin {{ server 127.0.0.1:{origin}; keepalive 64; }}
    proxy_http_version 1.1;
    proxy_set_header Connection "";
    server {{
        listen 127.0.0.1:{back};
        location / {{ default_type application/json; return 200 '{answer}'; }}
    }}
    server {{
        listen 127.0.0.1:{front};
        location /health {{ return 200 'ok'; }}
        location /v1/stream {{ proxy_pass http://origin; proxy_buffering off; }}
        location / {{ proxy_pass http://back; }}
    }}
}}
"""
LAYA_CONF = """\
version: 1
server: {{host: 127.0.0.1, port: {front}, max_connections: 4096}}
upstreams:
  - {{name: back, url: "http://127.0.0.1:{back}/v1"}}
  - {{name: origin, url: "http://127.0.0.1:{origin}/v1"}}
routes:
  - {{name: stream, match: {{prefix: /v1/stream}}, target: origin}}
  - {{name: chat, match: {{path: /v1/chat/completions}}, target: back}}
"""
LITELLM_CONF = """\
model_list:
  - model_name: m
    litellm_params: {{model: openai/m, api_base: "http://127.0.0.1:{back}/v1", api_key: unused}}
"""


class Servers:
    """Everything that runs: one nginx (server and proxy), Laya, and LiteLLM where it is wanted."""

    def __init__(self, args: argparse.Namespace, folder: Path, stack: ExitStack) -> None:
        self._folder, self._stack = folder, stack
        self.back, self.origin = free_port(), free_port()
        self.nginx = self._nginx(args.nginx)
        self.laya = self._laya()
        self.litellm = self._litellm(args.litellm) if args.litellm else None

    def _start(self, name: str, port: int, command: Sequence[str], env: dict[str, str], path: str) -> Contestant:
        log = self._folder / f"{name}.log"
        return self._stack.enter_context(server(name, port, command, log, env, path))

    def _nginx(self, binary: str) -> Contestant:
        front = free_port()
        conf = self._folder / "nginx.conf"
        conf.write_text(
            NGINX_CONF.format(folder=self._folder, back=self.back, front=front, origin=self.origin, answer=ANSWER)
        )
        return self._start("nginx", front, [binary, "-p", str(self._folder), "-c", str(conf)], {}, "/health")

    def _laya(self) -> Contestant:
        front = free_port()
        conf = self._folder / "laya.yaml"
        conf.write_text(LAYA_CONF.format(front=front, back=self.back, origin=self.origin))
        python_path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        env = {"LAYA_HOME": str(self._folder / "home"), "PYTHONPATH": python_path}
        return self._start("laya", front, [sys.executable, "-m", "laya_desktop", "serve", str(conf)], env, "/health")

    def _litellm(self, venv: Path) -> Contestant:
        front = free_port()
        conf = self._folder / "litellm.yaml"
        conf.write_text(LITELLM_CONF.format(back=self.back))
        command = [str(venv / "bin" / "litellm"), "--config", str(conf), "--host", "127.0.0.1", "--port", str(front)]
        env = {"LITELLM_TELEMETRY": "False", "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "ERROR"}
        env["LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY"] = "true"  # Laya has no key here either
        return self._start("litellm", front, command, env, "/health/liveliness")


def measure_whole(servers: Servers, measure: Measure, args: argparse.Namespace) -> list[dict[str, object]]:
    """Latency of whole answers at a fixed rate; nginx keeps running, because it is the server behind both."""
    contestants = [servers.laya, servers.nginx]
    take_turns(contestants, measure, args, standing_still=[servers.laya])
    servers.laya.send(signal.SIGCONT)
    return summary(contestants)


def measure_streamed(servers: Servers, args: argparse.Namespace) -> list[dict[str, object]]:
    """Delay of every event of many streams at once."""
    ports = {"direct": servers.origin, "laya": servers.laya.port, "nginx": servers.nginx.port}
    rounds: dict[str, list[dict[str, float]]] = {name: [] for name in ports}
    with streams.origin(servers.origin):
        for number in range(args.rounds + 1):
            for name, port in ports.items():
                reading = asyncio.run(streams.measure(port, args.streams, args.seconds))
                if number:
                    rounds[name].append(reading)
                    print(f"round {number} streamed {name:7} p99 {reading['p99_us']:8.0f} µs", file=sys.stderr)
    best = {name: {key: min(r[key] for r in found) for key in ("p50_us", "p99_us")} for name, found in rounds.items()}
    median = {
        name: {key: statistics.median(r[key] for r in found) for key in ("p50_us", "p99_us")}
        for name, found in rounds.items()
    }
    return [
        {
            "name": name,
            "best_p50_us": best[name]["p50_us"],
            "best_p99_us": best[name]["p99_us"],
            "median_p50_us": median[name]["p50_us"],
            "median_p99_us": median[name]["p99_us"],
            "best_p50_ratio": best[name]["p50_us"] / best["nginx"]["p50_us"],
            "best_p99_ratio": best[name]["p99_us"] / best["nginx"]["p99_us"],
            "median_p99_ratio": median[name]["p99_us"] / median["nginx"]["p99_us"],
            "events": sum(r["events"] for r in rounds[name]),
            "failed": sum(r["failed"] for r in rounds[name]),
            "rounds": rounds[name],
        }
        for name in ports
    ]


def measure_throughput(servers: Servers, args: argparse.Namespace) -> list[dict[str, object]]:
    """Requests a second on a closed loop."""
    contestants = [c for c in (servers.laya, servers.nginx, servers.litellm) if c is not None]
    rates: dict[str, list[float]] = {c.name: [] for c in contestants}
    failed = dict.fromkeys(rates, 0)
    for number in range(args.rounds + 1):
        for contestant in contestants:
            rate, bad = asyncio.run(
                streams.flood(contestant.port, CHAT_PATH, BODY.encode(), args.connections, args.seconds)
            )
            failed[contestant.name] += bad
            if number:
                rates[contestant.name].append(rate)
                print(f"round {number} throughput {contestant.name:8} {rate:8.0f} requests/s", file=sys.stderr)
    peer = max(rates["litellm"]) if servers.litellm else None
    return [
        {
            "name": name,
            "best_requests_per_s": max(found),
            "median_requests_per_s": statistics.median(found),
            "times_litellm": max(found) / peer if peer else None,
            "failed": failed[name],
            "rounds": found,
        }
        for name, found in rates.items()
    ]


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Arguments."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.proxy", description=__doc__.partition("\n")[0])
    parser.add_argument("--ratebench", required=True, metavar="PATH", help="compiled open-loop load generator")
    parser.add_argument("--litellm", type=Path, metavar="VENV", help="virtual environment with litellm[proxy]")
    parser.add_argument("--nginx", default=shutil.which("nginx"), metavar="PATH", help="default: the installed one")
    parser.add_argument("--rate", type=float, default=2000, help="whole answers a second")
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--streams", type=int, default=50, help="streams at once")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=("whole", "streamed", "throughput"), help="measure this alone")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all readings here")
    args = parser.parse_args(argv)
    if args.nginx is None:
        parser.error("install nginx, or name it with --nginx")
    if args.rounds < 1 or args.seconds <= 0 or args.rate <= 0 or args.connections < 1 or args.streams < 1:
        parser.error("rounds, seconds, rate, connections and streams must be above 0")
    return args


def main(argv: Sequence[str] | None = None) -> int:
    """Run, print, and return 1 where any request failed."""
    args = parse(argv)
    results: dict[str, list[dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory(prefix="laya-bench-") as name, ExitStack() as stack:
        folder = Path(name)
        body = folder / "body.json"
        body.write_text(BODY)
        servers = Servers(args, folder, stack)
        if args.only in (None, "whole"):
            measure = with_ratebench(args.ratebench, args.rate, args.connections, (CHAT_PATH, "POST", str(body)))
            results["whole"] = measure_whole(servers, measure, args)
            print_table(results["whole"])
        if args.only in (None, "streamed"):
            results["streamed"] = measure_streamed(servers, args)
            _print(results["streamed"])
        if args.only in (None, "throughput"):
            results["throughput"] = measure_throughput(servers, args)
            _print(results["throughput"])
    if args.json is not None:
        load = {"rate_per_s": args.rate, "connections": args.connections, "streams": args.streams}
        args.json.write_text(json.dumps({"load": load, "seconds": args.seconds, "results": results}, indent=2) + "\n")
    return 1 if any(line["failed"] for lines in results.values() for line in lines) else 0


def _print(lines: list[dict[str, Any]]) -> None:
    for line in lines:
        figures = {k: v for k, v in line.items() if isinstance(v, int | float)}
        print(f"{line['name']:8}", *(f"{k} {v:,.2f}" for k, v in figures.items()))


if __name__ == "__main__":
    sys.exit(main())
