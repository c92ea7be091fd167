"""Keeps a node's model busy until it is ended: ``python -m benchmarks.http_rate_chats PORT CHATS``."""

from __future__ import annotations

import asyncio
import sys

from benchmarks.chats import chat


async def main(port: int, chats: int) -> None:
    """One answer after another in each of so many chats."""

    async def talk(number: int, tokens: int) -> None:
        said = f"Tell me a very long story, number {number}."
        await chat(port, {"model": "demo", "messages": [{"role": "user", "content": said}], "max_tokens": tokens})

    async def talk_on(number: int) -> None:
        while True:
            await talk(number, 1500)

    await talk(0, 1)  # loads the model
    print("generating", flush=True)
    await asyncio.gather(*(talk_on(number) for number in range(chats)))


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
