"""Streamed chats with timed tokens, for the benchmarks of inference: one small client, the same for every server."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Chat:
    """One streamed answer: when each piece came (``time.perf_counter`` seconds), and what the server says of it."""

    sent_s: float
    pieces_s: list[float] = field(default_factory=list)
    done_s: float = 0.0
    tokens: int = 0
    cached_tokens: int = 0
    status: int = 0
    text: str = ""

    @property
    def ttft_s(self) -> float:
        """From sending to the first piece."""
        return self.pieces_s[0] - self.sent_s if self.pieces_s else float("nan")

    @property
    def gaps_s(self) -> list[float]:
        """Between one piece and the next."""
        return [b - a for a, b in zip(self.pieces_s, self.pieces_s[1:], strict=False)]


async def chat(port: int, body: dict[str, Any], path: str = "/v1/chat/completions", headers: str = "") -> Chat:
    """Ask and read to the end. ``body`` is sent with ``stream`` and usage asked for."""
    sent = json.dumps({**body, "stream": True, "stream_options": {"include_usage": True}}).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n{headers}"
    result = Chat(time.perf_counter())
    writer.write(f"{head}Content-Length: {len(sent)}\r\nConnection: close\r\n\r\n".encode() + sent)
    try:
        result.status = int((await reader.readline()).split()[1])
        async for line in reader:
            if line.startswith(b"data: {"):
                _note(result, json.loads(line[6:]), time.perf_counter())
    finally:
        writer.close()
    result.done_s = time.perf_counter()
    return result


def _note(result: Chat, event: dict[str, Any], now_s: float) -> None:
    if usage := event.get("usage"):
        result.tokens = usage.get("completion_tokens", 0)
        result.cached_tokens = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    for choice in event.get("choices", ()):
        if text := (choice.get("delta") or {}).get("content"):
            result.pieces_s.append(now_s)
            result.text += text


def percentile(values: list[float], share: float) -> float:
    """The value below which that share lies (nearest rank); NaN of nothing."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else float("nan")
