"""Encoders (BERT) and pooling in llama.cpp, against NumPy, with a tiny model made on the spot."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np
import psutil
import pytest

from laya_desktop.config.schema import ModelConfig
from laya_desktop.node.engines.base import EngineLoadError, EngineParams, Refused, Vector
from laya_desktop.node.engines.gguf_reader import read_header
from laya_desktop.node.engines.worker_main import create_engine
from laya_desktop.node.memory import estimate
from laya_desktop.state.enums import Verdict
from tests.helpers.engine_harness import DirectHarness, Talk, demo_model
from tests.helpers.gguf_writer import with_metadata
from tests.helpers.tiny_bert import CLS, PLACES, SEP, WIDTH, TinyBert, write_tiny_bert

TEXTS = {"a cat sleeps .": [5, 6, 8, 12], "dogs": [7, 11], "A dog runs fast": [5, 7, 9, 10], "zebra": [1]}


@contextmanager
def loaded(path: Path | str, pooling: Any = "auto", max_seq_len: int = 4096) -> Iterator[Talk]:
    params = EngineParams("m", str(path), device="cpu", slots=2, max_seq_len=max_seq_len, threads=2, pooling=pooling)
    harness = DirectHarness(create_engine("llama_cpp"), params)
    try:
        yield Talk(harness)
    finally:
        harness.close()


def vectors(talk: Talk, inputs: list[Any], **fields: object) -> Any:
    request_id = talk.give(task="embed", inputs=inputs, **fields)
    talk.wait_over(request_id)
    found = sorted((e for e in talk.of(request_id) if isinstance(e, Vector)), key=lambda e: e.index)
    assert len(found) == len(inputs), talk.last(request_id)
    return np.stack([np.frombuffer(e.values, "<f4") for e in found])


def pooled(rows: Any, how: str) -> Any:
    row = {"mean": rows.mean(axis=0), "cls": rows[0], "last": rows[-1]}[how]
    return row / np.linalg.norm(row)


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> TinyBert:
    return write_tiny_bert(tmp_path_factory.mktemp("bert") / "bert.gguf")


@pytest.mark.parametrize("how", ["mean", "cls", "last"])
def test_an_encoder_computes_what_numpy_computes(bert: TinyBert, how: Literal["mean", "cls", "last"]) -> None:
    wanted = [pooled(bert.rows([CLS, *tokens, SEP]), how) for tokens in TEXTS.values()]
    with loaded(bert.path, how) as talk:
        assert vectors(talk, list(TEXTS)) == pytest.approx(np.stack(wanted), abs=1e-3)


def test_auto_pools_as_the_file_says(tmp_path: Path) -> None:
    for number, how in ((2, "cls"), (3, "last"), (None, "mean")):
        made = write_tiny_bert(tmp_path / f"{how}.gguf", number)
        with loaded(made.path) as talk:
            assert vectors(talk, [[CLS, 6, SEP]])[0] == pytest.approx(pooled(made.rows([CLS, 6, SEP]), how), abs=1e-3)


def test_more_texts_than_a_batch_holds_and_cancelling(bert: TinyBert) -> None:
    texts = [[CLS, *[5 + i % 7] * (i % (PLACES - 2)), SEP] for i in range(60)]
    with loaded(bert.path) as talk:
        cancelled = talk.give(task="embed", inputs=texts)
        talk.harness.cancel(cancelled)
        found = vectors(talk, texts)
        assert found == pytest.approx(np.stack([pooled(bert.rows(t), "mean") for t in texts]), abs=1e-3)
        assert not talk.of(cancelled)[1:-1]
        assert talk.harness.engine.free_slots == 2  # type: ignore[attr-defined]


def test_an_encoder_generates_no_text(bert: TinyBert) -> None:
    with loaded(bert.path) as talk:
        for fields in ({"prompt": "a cat"}, {"messages": [{"role": "user", "content": "a cat"}]}):
            refused = talk.refusal(**fields)
            assert (refused.status, refused.code) == (400, "not_supported")
            assert "encoder" in refused.message
            assert "/v1/embeddings" in (refused.hint or "")
        assert talk.harness.loaded.kv_cache_bytes == 0
        assert not talk.harness.loaded.has_chat_template
        assert any("encoder" in note for note in talk.harness.loaded.notes)


def test_a_text_longer_than_an_encoder_was_made_for_is_refused(bert: TinyBert) -> None:
    with loaded(bert.path) as talk:
        assert talk.harness.loaded.max_seq_len == PLACES
        vectors(talk, [[5] * PLACES])
        assert talk.refusal(task="embed", inputs=[[5] * (PLACES + 1)]).code == "context_length_exceeded"
    with loaded(bert.path, max_seq_len=16) as talk:
        assert talk.refusal(task="embed", inputs=[[5] * 17]).code == "context_length_exceeded"


def test_fewer_dimensions_are_the_first_ones_at_length_one(bert: TinyBert) -> None:
    with loaded(bert.path) as talk:
        whole, cut = vectors(talk, ["a cat"]), vectors(talk, ["a cat"], dimensions=8)
        assert cut[0] == pytest.approx(whole[0, :8] / np.linalg.norm(whole[0, :8]), abs=1e-6)
        assert vectors(talk, ["a cat"], dimensions=WIDTH) == pytest.approx(whole, abs=1e-6)
        refused = talk.refusal(task="embed", inputs=["a cat"], dimensions=WIDTH + 1)
        assert (refused.param, str(WIDTH) in refused.message) == ("dimensions", True)


def test_rerankers_and_pooling_none_are_refused_by_name(tmp_path: Path, bert: TinyBert) -> None:
    ranks = write_tiny_bert(tmp_path / "rank.gguf", 4)
    with pytest.raises(EngineLoadError, match="reranker"), loaded(ranks.path):
        pass
    with loaded(bert.path, "none") as talk:
        refused = talk.refusal(task="embed", inputs=["a cat"])
        assert isinstance(refused, Refused)
        assert "pooling is none" in refused.message


def test_an_encoders_memory_is_estimated(bert: TinyBert) -> None:
    found = asyncio.run(estimate(ModelConfig(name="m", path=bert.path), bert.path, "cpu", 8 * 2**30))
    assert (found.verdict, found.kv_cache_bytes) == (Verdict.FITS, 0)
    assert found.total_bytes


def test_the_estimate_counts_what_an_encoders_longest_text_takes(tmp_path: Path) -> None:
    """llama.cpp tells of it in no log line: the worker's own growth is the measure."""
    path = write_tiny_bert(tmp_path / "wide.gguf", places=1024, more_words=40_000).path
    model = ModelConfig(name="m", path=path, max_seq_len=1024)
    with loaded(path, max_seq_len=1024) as talk:
        process = psutil.Process()
        before_bytes = process.memory_info().rss
        vectors(talk, [[5] * 1024])
        grown_bytes = process.memory_info().rss - before_bytes
        assert grown_bytes == pytest.approx(talk.harness.loaded.compute_bytes, rel=0.15)
    found = asyncio.run(estimate(model, path, "cpu", 8 * 2**30))
    assert found.compute_bytes == pytest.approx(grown_bytes, rel=0.15)
    tight = asyncio.run(estimate(model, path, "cpu", (found.total_bytes or 0) * 2 // 3))
    assert tight.verdict is Verdict.WILL_NOT_FIT
    assert tight.proposal is not None
    assert (tight.proposal.max_seq_len or 1024) < 1024


@pytest.mark.e2e
def test_a_language_models_vectors_follow_its_pooling() -> None:
    import llama_cpp

    kinds = {"cls": llama_cpp.LLAMA_POOLING_TYPE_CLS, "last": llama_cpp.LLAMA_POOLING_TYPE_LAST}
    texts = ["A cat sleeps on the mat.", "The quick brown fox jumps over the lazy dog. " * 18]
    for how, number in kinds.items():
        peer = llama_cpp.Llama(demo_model(), embedding=True, pooling_type=number, n_ctx=256, verbose=False)
        theirs = np.array([peer.embed(text, normalize=True) for text in texts])
        peer.close()
        with loaded(demo_model(), how, 256) as talk:
            assert (vectors(talk, texts) * theirs).sum(axis=1) == pytest.approx([1, 1], abs=1e-3)
            if how == "last":
                assert talk.say(prompt="Once", max_tokens=2)[1].completion_tokens == 2
    with loaded(demo_model(), "rank", 256) as talk:
        assert "reranker" in talk.refusal(task="embed", inputs=texts).message


@pytest.mark.e2e
def test_a_language_model_made_to_see_all_of_a_text_is_an_encoder(tmp_path: Path) -> None:
    """It has cells, unlike BERT, and the demo model's are real weights; a text is longer than a piece of a batch."""
    import llama_cpp

    source = Path(demo_model())
    more = {"llama.attention.causal": False}
    path = with_metadata(source, tmp_path / "both.gguf", more, read_header(source).data_start)
    texts = ["A cat sleeps on the mat.", "The quick brown fox jumps over the lazy dog. " * 18]
    peer = llama_cpp.Llama(
        str(path), embedding=True, pooling_type=llama_cpp.LLAMA_POOLING_TYPE_MEAN, n_ctx=256, n_batch=256,
        n_ubatch=256, verbose=False,
    )  # fmt: skip
    theirs = np.array([peer.embed(text, normalize=True) for text in texts])
    peer.close()
    with loaded(path, max_seq_len=256) as talk:
        assert "encoder" in talk.refusal(prompt="Once").message
        for _ in range(2):
            assert (vectors(talk, texts * 3) * np.tile(theirs, (3, 1))).sum(axis=1) == pytest.approx([1] * 6, abs=1e-3)
