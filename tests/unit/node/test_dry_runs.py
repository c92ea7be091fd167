"""The same question about the same file is asked once."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from laya_desktop.node.dry_runs import KEPT, DryRuns
from laya_desktop.node.engines.base import DryRunDone, EngineParams

CPU = DryRunDone("CPU", 1, 2, 3)


def test_answers_are_kept_by_file_and_parameters(tmp_path: Path) -> None:
    file = tmp_path / "m.gguf"
    file.write_bytes(b"one")
    asked: list[EngineParams] = []

    async def ask(params: EngineParams) -> DryRunDone:
        asked.append(params)
        return CPU if params.device == "cpu" else DryRunDone("CUDA0", 1, 2, 3, gpu_bytes=5, gpu_free_bytes=9)

    async def script() -> None:
        runs = DryRuns(None, ask)

        async def run(**changes: object) -> int:
            before = len(asked)
            await runs(EngineParams(**{"name": "m", "path": str(file), "device": "cpu", **changes}))  # type: ignore[arg-type]
            return len(asked) - before

        assert [await run(), await run(), await run(name="other", threads=7)] == [1, 0, 0]
        assert [await run(slots=2), await run(max_seq_len=1024), await run(slots=2)] == [1, 1, 0]
        assert [await run(kv_type="q8_0"), await run(flash_attention="off"), await run(kv_type="q8_0")] == [1, 1, 0]
        file.write_bytes(b"another")
        assert [await run(), await run()] == [1, 0]
        os.utime(file, ns=(1, 1))
        assert await run() == 1
        assert [await run(device="gpu"), await run(device="gpu")] == [1, 1], "what is free on a GPU changes"
        assert [await run(device="auto"), await run(device="auto")] == [1, 1], "and with it what auto chooses"
        missing = str(tmp_path / "none")
        assert [await run(path=missing), await run(path=missing)] == [1, 1]
        for slots in range(3, 4 + KEPT):
            await run(slots=slots)
        assert await run() == 1, "the oldest are forgotten"

    asyncio.run(script())
