"""Adapters (LoRA) with the demo model: they act by their scale, count as memory, and wrong ones are named."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from laya_desktop.node.engines.base import Adapter, Delta, DryRunDone, EngineLoadError, EngineParams, Sampling, Vector
from laya_desktop.node.engines.base import DryRun as DryRunCommand
from laya_desktop.node.engines.oneshot import ask
from laya_desktop.node.engines.worker_main import create_engine
from tests.helpers.engine_harness import DirectHarness, Talk, demo_model
from tests.helpers.gguf_writer import write_gguf
from tests.helpers.lora_writer import write_adapter

pytestmark = pytest.mark.e2e
PROMPT = "Once upon a time there was a little"


def params(*lora: Adapter) -> EngineParams:
    return EngineParams("m", demo_model(), device="cpu", slots=1, max_seq_len=256, threads=2, warmup=False, lora=lora)


def says(*lora: Adapter) -> tuple[str, list[float], np.ndarray]:
    """An answer, the log probabilities of its tokens, and a vector."""
    harness = DirectHarness(create_engine("llama_cpp"), params(*lora))
    try:
        talk = Talk(harness)
        request_id = talk.give(prompt=PROMPT, max_tokens=8, sampling=Sampling(temperature=0), logprobs=0)
        talk.wait_over(request_id)
        embedding = talk.give(task="embed", inputs=[PROMPT])
        talk.wait_over(embedding)
        logprobs = [t.logprob for e in talk.of(request_id) if isinstance(e, Delta) for t in e.logprobs]
        (vector,) = (np.frombuffer(e.values, "<f4") for e in talk.of(embedding) if isinstance(e, Vector))
        return talk.text(request_id), logprobs, vector
    finally:
        harness.close()


def test_an_adapter_acts_by_its_scale(tmp_path: Path) -> None:
    path = str(write_adapter(tmp_path / "style.gguf"))
    plain = says()
    silent, slight, strong = (says(Adapter(path, scale)) for scale in (0.0, 0.02, 2.0))
    assert silent[:2] == plain[:2]
    assert silent[2] == pytest.approx(plain[2], abs=1e-6)
    assert slight[1] != plain[1]
    assert strong[0] != plain[0]
    assert strong[2] @ plain[2] < slight[2] @ plain[2] < 0.99999, "vectors follow the adapter too"


def test_several_adapters_add_up(tmp_path: Path) -> None:
    one = str(write_adapter(tmp_path / "one.gguf"))
    same = str(write_adapter(tmp_path / "same.gguf"))
    doubled, both = says(Adapter(one, 0.04)), says(Adapter(one, 0.02), Adapter(same, 0.02))
    assert both[1] == pytest.approx(doubled[1], abs=0.02)


def test_the_estimate_counts_adapters(tmp_path: Path) -> None:
    big = write_adapter(tmp_path / "big.gguf", rank=2048)
    plain, with_it = (asyncio.run(ask("m", DryRunCommand(params(*lora)), 60)) for lora in ((), (Adapter(str(big)),)))
    assert isinstance(plain, DryRunDone)
    assert isinstance(with_it, DryRunDone)
    more = (with_it.other_bytes or 0) - (plain.other_bytes or 0)
    assert more == pytest.approx(big.stat().st_size, rel=0.15)


def no_file(folder: Path) -> Path:
    return folder / "none.gguf"


def other_architecture(folder: Path) -> Path:
    return write_adapter(folder / "a.gguf", architecture="qwen2")


def other_tensors(folder: Path) -> Path:
    return write_adapter(folder / "a.gguf", ("blk.99.attn_q.weight",))


def other_width(folder: Path) -> Path:
    return write_adapter(folder / "a.gguf", width=512)


def whole_model(folder: Path) -> Path:
    return write_gguf(folder / "model.gguf")


def hugging_face(folder: Path) -> Path:
    path = folder / "adapter_model.safetensors"
    path.write_bytes(b"\x10\0\0\0\0\0\0\0{}")
    return path


def cut_off(folder: Path) -> Path:
    path = write_adapter(folder / "a.gguf")
    path.write_bytes(path.read_bytes()[:-100])
    return path


@pytest.mark.parametrize(
    ("make", "code", "words"),
    [
        (no_file, "adapter_file_missing", "There is no adapter file"),
        (other_architecture, "bad_adapter", "architecture qwen2"),
        (other_tensors, "bad_adapter", "changes blk.99.attn_q.weight"),
        (other_width, "bad_adapter", "wrong base model"),
        (whole_model, "bad_adapter", "no adapter (LoRA)"),
        (hugging_face, "bad_adapter", "convert_lora_to_gguf.py"),
        (cut_off, "bad_adapter", "is cut off"),
    ],
)
def test_a_wrong_adapter_is_refused_with_the_way_out(
    tmp_path: Path, make: Callable[[Path], Path], code: str, words: str
) -> None:
    path = make(tmp_path)
    engine = create_engine("llama_cpp")
    with pytest.raises(EngineLoadError) as caught:
        engine.load(params(Adapter(str(path))), lambda _progress: None)
    engine.close()
    assert caught.value.code == code
    assert words in f"{caught.value.message} {caught.value.hint}"
    assert path.name in caught.value.message
    assert caught.value.hint
