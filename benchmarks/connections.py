"""What idle and slow connections cost: p99 of other requests, and memory per connection.

    python -m benchmarks.connections --ratebench PATH [--idle 2000] [--slow 500] [--rounds 5] [--json FILE]

A headless Laya node is measured at a fixed rate on ``/health`` by turns without and with the crowd: idle keep-alive
connections that have asked once, and slow ones that send a byte of a request head each second. Memory is the growth of
the node's resident set over the number of connections. Linux only (``/proc``).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import statistics
import sys
import tempfile
from collections.abc import Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.http_rate import PATH, ROOT, Measure, free_port, server, with_ratebench

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

CONF = """\
version: 1
server: {{host: 127.0.0.1, port: {port}, max_connections: 8192, head_timeout: 10m,
  idle_timeout: 10m}}
"""
TRICKLE_S = 1.0
_HEAD = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "


def rss_bytes(pid: int) -> int:
    """Resident set of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@asynccontextmanager
async def crowd(port: int, idle: int, slow: int) -> AsyncIterator[None]:
    """Hold the connections open."""
    writers: list[asyncio.StreamWriter] = []
    for number in range(idle + slow):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writers.append(writer)
        if number < idle:
            writer.write(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            await reader.readuntil(b"}")
        else:
            writer.write(_HEAD)
    trickle = asyncio.get_running_loop().create_task(_trickle(writers[idle:]))
    try:
        yield
    finally:
        trickle.cancel()
        for writer in writers:
            writer.transport.abort()
        await asyncio.sleep(0.2)


async def _trickle(writers: list[asyncio.StreamWriter]) -> None:
    while writers:
        for writer in writers:
            writer.write(b"x")
            await asyncio.sleep(TRICKLE_S / len(writers))


async def run(port: int, pid: int, measure: Measure, args: argparse.Namespace) -> dict[str, object]:
    """Take turns: alone, with the crowd, alone and so on."""
    alone, crowded, memory = [], [], []
    await asyncio.to_thread(measure, port, 1.0)
    for _ in range(args.rounds):
        alone.append((await asyncio.to_thread(measure, port, args.seconds))["p99_us"])
        before = rss_bytes(pid)
        async with crowd(port, args.idle, args.slow):
            memory.append((rss_bytes(pid) - before) / (args.idle + args.slow))
            crowded.append((await asyncio.to_thread(measure, port, args.seconds))["p99_us"])
    return {
        "idle": args.idle,
        "slow": args.slow,
        "p99_us_alone": alone,
        "p99_us_crowded": crowded,
        "best_p99_ratio": min(crowded) / min(alone),
        "median_p99_ratio": statistics.median(crowded) / statistics.median(alone),
        "bytes_per_connection": max(memory),
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.connections", description=__doc__.partition("\n")[0])
    parser.add_argument("--ratebench", required=True, metavar="PATH", help="compiled open-loop load generator")
    parser.add_argument("--idle", type=int, default=2000)
    parser.add_argument("--slow", type=int, default=500)
    parser.add_argument("--rate", type=float, default=5000)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all readings here")
    args = parser.parse_args(argv)
    wanted = 2 * (args.idle + args.slow) + 256
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < wanted:
        parser.error(f"this user may open {hard} files; {wanted} are needed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    with tempfile.TemporaryDirectory(prefix="laya-bench-") as name:
        folder, port = Path(name), free_port()
        conf = folder / "laya.yaml"
        conf.write_text(CONF.format(port=port))
        python_path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        env = {"LAYA_HOME": str(folder / "home"), "PYTHONPATH": python_path}
        command = [sys.executable, "-m", "laya_desktop", "serve", str(conf)]
        with server("laya", port, command, folder / "log", env, PATH) as laya:
            measure = with_ratebench(args.ratebench, args.rate, 16)
            result = asyncio.run(run(port, laya.process.pid, measure, args))
    print(json.dumps(result, indent=2))
    if args.json is not None:
        args.json.write_text(json.dumps(result, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
