"""What workers held is remembered, within bounds, and corrects the next estimate."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laya_desktop.config.schema import ModelConfig
from laya_desktop.node.engines.base import DryRunDone, EngineParams
from laya_desktop.node.measured import KEPT, LEAST, MOST, MeasuredLoads, PeakWatch, corrected, key_of
from laya_desktop.node.memory import estimate
from laya_desktop.state.enums import Verdict
from laya_desktop.state.snapshot import ModelSnapshot, SlotSnapshot

MIB = 2**20
RUN = DryRunDone("CPU", 100 * MIB, 50 * MIB, 20 * MIB, 0, 10, other_bytes=30 * MIB)
PARAMS = EngineParams("m", "/m.gguf", slots=2, max_seq_len=512)


def _total(run: DryRunDone) -> int:
    return sum(part or 0 for part in (run.weights_bytes, run.kv_cache_bytes, run.compute_bytes, run.other_bytes))


@given(st.integers(1, 2000 * MIB))
def test_the_total_comes_to_what_was_measured_within_bounds(measured: int) -> None:
    total = _total(corrected(RUN, measured))
    assert LEAST * 200 * MIB - 1 <= total <= MOST * 200 * MIB + 1
    if LEAST * 200 * MIB <= measured <= MOST * 200 * MIB:
        assert total == measured


def test_without_a_measurement_or_on_a_gpu_nothing_changes() -> None:
    gpu = DryRunDone("CUDA0", 1, 1, 1, 1, 1, gpu_bytes=3, other_bytes=1)
    assert corrected(RUN, None) is RUN
    assert corrected(gpu, 9 * MIB) is gpu
    assert corrected(DryRunDone("CPU"), 9 * MIB) == DryRunDone("CPU")


def test_a_measurement_turns_the_verdict() -> None:
    async def dry_run(_params: EngineParams) -> DryRunDone:
        return RUN

    def verdict(measured: int | None) -> Verdict:
        model = ModelConfig(name="m", path="m.gguf")
        return asyncio.run(estimate(model, Path("m.gguf"), "cpu", 250 * MIB, dry_run, measured)).verdict

    assert verdict(None) is Verdict.FITS
    assert verdict(240 * MIB) is Verdict.TIGHT
    assert verdict(300 * MIB) is Verdict.WILL_NOT_FIT


def test_the_key_has_all_that_changes_the_memory() -> None:
    def key(identity: Any = ("/m.gguf", 1, 2), **changes: Any) -> str:
        fields = {"name": "m", "path": "/m.gguf", "slots": 2, "max_seq_len": 512} | changes
        return key_of(EngineParams(**fields), identity)

    assert key() == key(name="other", threads=7, warmup=False, device="auto", memory_limit_bytes=5)
    others = [
        key(slots=3),
        key(max_seq_len=1024),
        key(kv_type="q8_0"),
        key(mmap=False),
        key(identity=("/m.gguf", 1, 3)),
    ]
    assert len({key(), *others}) == 6


def test_peaks_outlive_the_process_and_only_grow(tmp_path: Path) -> None:
    file = tmp_path / "state" / "measured.json"
    store = MeasuredLoads(file)
    store.add("a", 10)
    store.add("a", 7)
    assert MeasuredLoads(file).get("a") == 10
    assert MeasuredLoads(file).get("b") is None
    for i in range(KEPT):
        store.add(f"k{i}", i + 1)
    assert MeasuredLoads(file).get("a") is None, "the oldest are forgotten"
    assert len(json.loads(file.read_text())["peaks"]) == KEPT
    assert list(file.parent.iterdir()) == [file]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"version": 9, "peaks": {"a": 1}}', '{"version": 1, "peaks": 3}', "\udcff"]
)
def test_a_file_that_cannot_be_read_counts_as_none(tmp_path: Path, text: str) -> None:
    file = tmp_path / "measured.json"
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    store = MeasuredLoads(file)
    assert store.get("a") is None
    store.add("a", 5)
    assert MeasuredLoads(file).get("a") == 5


def test_entries_that_make_no_sense_are_dropped(tmp_path: Path) -> None:
    file = tmp_path / "measured.json"
    file.write_text(json.dumps({"version": 1, "peaks": {"a": -1, "b": "x", "c": True, "d": 4}}))
    store = MeasuredLoads(file)
    assert [store.get(key) for key in "abcd"] == [None, None, None, 4]


def test_a_place_that_cannot_be_written_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = MeasuredLoads(tmp_path / "file" / "measured.json")
    store.add("a", 5)
    assert store.get("a") == 5


def _look(watch: PeakWatch, rss: int, *, pid: int = 7, tokens: int = 9, running: int = 0, **config: Any) -> list[int]:
    model = ModelConfig(name="m", path="m.gguf", **config)
    runtime: Any = SimpleNamespace(name="m", loaded_config=model, loaded=SimpleNamespace(device="CPU"))
    shown = ModelSnapshot("m", pid=pid, rss_bytes=rss, running=running, slots=(SlotSnapshot(0, None, None, tokens),))
    return [held for _, held in watch.news([runtime], [shown])]


def test_news_are_idle_workers_that_decoded_and_hold_more_than_was_told() -> None:
    watch = PeakWatch()
    assert _look(watch, 1000, tokens=0) == []
    assert _look(watch, 1000, running=1) == []
    assert _look(watch, 1000, replicas=2) == []
    assert _look(watch, 1000) == [1000]
    assert _look(watch, 1005) == []
    assert _look(watch, 1011) == [1011]
    assert _look(watch, 900) == []
    assert _look(watch, 900, pid=8) == [900], "another process begins anew"
