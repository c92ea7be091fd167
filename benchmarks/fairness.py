"""What the scheduler and the caches are worth, on one node with the demo model.

    python -m benchmarks.fairness [--seconds 20] [--json FILE]

- priority: five long batch jobs saturate a model of two slots while a short interactive request comes every second;
  p95 of its whole time and the long jobs' token rate, under ``fifo`` and under ``priority``, in turns.
- prefix: TTFT of a chat with a system prompt of about 400 tokens, the first time and again with another question.
- cache: the same deterministic request twice with the response cache on: time of the miss and of the hit.
- dropped: ten streams that their clients leave at random moments: tokens that were decoded for them afterwards.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

from benchmarks.chats import Chat, chat, percentile
from benchmarks.inference import laya

_LONG = {"max_tokens": 200, "temperature": 0.8, "ignore_eos": True}
_SHORT = {"max_tokens": 8, "temperature": 0.0, "ignore_eos": True}
_ROUTES = """routes:
  - {name: jobs, match: {prefix: /jobs}, target: m, priority: batch}
  - {name: people, match: {prefix: /people}, target: m, priority: interactive}
"""
_WORDS = "river stone lamp garden engine winter paper bridge silver morning "


def ask(text: str, **more: Any) -> dict[str, Any]:
    """A chat's body."""
    return {"model": "m", "messages": [{"role": "user", "content": text}], **more}


async def saturated(port: int, seconds: float) -> dict[str, float]:
    """Five jobs at all times, and a short request every second."""
    end_s = time.perf_counter() + seconds
    jobs: list[Chat] = []

    async def job(number: int) -> None:
        while time.perf_counter() < end_s:
            topic = random.random()
            jobs.append(await chat(port, ask(f"Long story {number} {topic}.", **_LONG), "/jobs/v1/chat/completions"))

    async def person(number: int) -> Chat:
        return await chat(port, ask(f"Question {number}: yes or no?", **_SHORT), "/people/v1/chat/completions")

    began_s = time.perf_counter()
    people: list[asyncio.Task[Chat]] = []
    async with asyncio.TaskGroup() as group:
        for i in range(5):
            group.create_task(job(i))
        await asyncio.sleep(2)
        while time.perf_counter() < end_s:
            people.append(group.create_task(person(len(people))))
            await asyncio.sleep(1)
    short = [task.result() for task in people]
    took_s = max(c.done_s for c in jobs) - began_s
    return {
        "short_p95_s": percentile([c.done_s - c.sent_s for c in short], 0.95),
        "short_p50_s": percentile([c.done_s - c.sent_s for c in short], 0.5),
        "long_tokens_per_s": sum(c.tokens for c in jobs) / took_s,
        "short_tokens_per_s": sum(c.tokens for c in short) / took_s,
    }


def priority(threads: int, seconds: float) -> dict[str, Any]:
    """Under both policies, twice in turns."""
    found: dict[str, list[dict[str, float]]] = {"fifo": [], "priority": []}
    for _ in range(2):
        for policy, rounds in found.items():
            queue = f", queue: {{policy: {policy}}}"
            with laya(threads, queue, _ROUTES, slots=2) as port:
                rounds.append(asyncio.run(saturated(port, seconds)))
    made = {p: {k: round(statistics.mean(r[k] for r in rounds), 3) for k in rounds[0]} for p, rounds in found.items()}
    ratios = {k: round(made["priority"][k] / made["fifo"][k], 3) for k in made["fifo"]}
    return {**made, "priority / fifo": ratios}


def prefix(threads: int) -> dict[str, float]:
    """TTFT with a long system prompt, first and again; the median of five different prompts."""
    first, again = [], []
    with laya(threads, slots=2, context=1024) as port:
        for i in range(5):
            system = f"You are assistant {i}. " + _WORDS * 40
            for question, into in (("What is your name?", first), ("Where is the bridge?", again)):
                body = {
                    "model": "m",
                    "messages": [{"role": "system", "content": system}, {"role": "user", "content": question}],
                    "max_tokens": 4,
                    "temperature": 0,
                }
                found = asyncio.run(chat(port, body))
                into.append((found.ttft_s, found.cached_tokens))
    one, two = statistics.median(t for t, _ in first), statistics.median(t for t, _ in again)
    cached = statistics.median(c for _, c in again)
    return {
        "first_ttft_ms": round(one * 1000, 1),
        "again_ttft_ms": round(two * 1000, 1),
        "again / first": round(two / one, 3),
        "cached_tokens": cached,
    }


def cache(threads: int) -> dict[str, float]:
    """A miss and its hits."""
    with laya(threads, ", cache: {enabled: true}", slots=2) as port:
        body = ask("Tell me a story.", max_tokens=128, temperature=0, ignore_eos=True)
        times = []
        for _ in range(21):
            found = asyncio.run(chat(port, body))
            times.append(found.done_s - found.sent_s)
    hit_s = statistics.median(times[1:])
    return {"miss_ms": round(times[0] * 1000, 1), "hit_ms": round(hit_s * 1000, 2), "miss / hit": times[0] // hit_s}


def dropped(threads: int) -> dict[str, Any]:
    """Leave ten streams, one after another and at random moments, and look at what was decoded afterwards."""
    with laya(threads, slots=4) as port:
        after = [asyncio.run(_drop(port)) for _ in range(10)]
    return {"most_tokens_after_the_drop": max(after), "tokens_after_the_drop": after}


async def _drop(port: int) -> int:
    body = json.dumps({**ask(f"Story {random.random()}.", **_LONG), "stream": True}).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
    writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    pieces, leave_at, request_id = 0, random.randint(2, 60), ""
    async for line in reader:
        if line.lower().startswith(b"x-request-id:"):
            request_id = line.split(b":")[1].strip().decode()
        if b'"content":"' in line and b'"content":""' not in line:
            pieces += 1
        if pieces >= leave_at:
            break
    writer.transport.abort()
    while True:
        requests = (await asyncio.to_thread(_snapshot, port))["requests"]
        mine = next((r for r in requests if r["request_id"] == request_id), None)
        if mine is not None and mine["phase"] == "cancelled":
            return int(mine["completion_tokens"] or 0) - pieces
        await asyncio.sleep(0.05)


def _snapshot(port: int) -> dict[str, Any]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/admin/snapshot", timeout=5) as answer:
        return dict(json.load(answer))


def main() -> int:
    """Run, print, write JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    result: dict[str, Any] = {}
    for name, measure in (
        ("prefix", lambda: prefix(args.threads)),
        ("cache", lambda: cache(args.threads)),
        ("dropped", lambda: dropped(args.threads)),
        ("priority", lambda: priority(args.threads, args.seconds)),
    ):
        result[name] = measure()
        print(name, json.dumps(result[name], indent=2), flush=True)
    if args.json:
        args.json.write_text(json.dumps(result, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
