"""What every engine does beside answers: vectors of texts, tokens of texts, text of tokens."""

from __future__ import annotations

import numpy as np
import pytest

from laya_desktop.node.engines.base import Delta, Finished, Prefilled, Started, Tokens, Vector
from tests.helpers.engine_harness import MAX_SEQ_LEN, SLOTS, Harness, Talk, demo_model

TEXTS = ["A cat sleeps on the mat.", "Stock prices fell.", "A cat sleeps on the mat."]


def vectors(talk: Talk, inputs: list[str | list[int]], **fields: object) -> np.ndarray:
    request_id = talk.give(task="embed", inputs=inputs, **fields)
    talk.wait_over(request_id)
    found = sorted((e for e in talk.of(request_id) if isinstance(e, Vector)), key=lambda e: e.index)
    assert [e.index for e in found] == list(range(len(inputs)))
    return np.stack([np.frombuffer(e.values, "<f4") for e in found])


def tokens(talk: Talk, prompt: str) -> Tokens:
    request_id = talk.give(task="tokenize", prompt=prompt, add_special=False)
    talk.wait_over(request_id)
    (found,) = (e for e in talk.of(request_id) if isinstance(e, Tokens))
    return found


def test_vectors_have_length_one_and_equal_texts_have_equal_ones(talk: Talk) -> None:
    found = vectors(talk, TEXTS)
    assert np.linalg.norm(found, axis=1) == pytest.approx([1, 1, 1], abs=1e-4)
    assert found[0] @ found[2] == pytest.approx(1, abs=1e-3)
    assert found[0] @ found[1] < 0.9999


def test_fewer_dimensions_are_the_first_ones_at_length_one(talk: Talk) -> None:
    whole, cut = vectors(talk, TEXTS[:2]), vectors(talk, TEXTS[:2], dimensions=5)
    assert cut == pytest.approx(whole[:, :5] / np.linalg.norm(whole[:, :5], axis=1, keepdims=True), abs=0.02)
    refused = talk.refusal(task="embed", inputs=TEXTS[:1], dimensions=whole.shape[1] + 1)
    assert (refused.param, str(whole.shape[1]) in refused.message) == ("dimensions", True)


def test_the_events_of_an_embedding(talk: Talk, harness: Harness) -> None:
    request_id = talk.give(task="embed", inputs=TEXTS)
    talk.wait_over(request_id)
    kinds = [type(e) for e in talk.of(request_id)]
    assert kinds == [Started, Prefilled, Vector, Vector, Vector, Finished]
    last = talk.last(request_id)
    assert isinstance(last, Finished)
    assert last.prompt_tokens == talk.of(request_id)[0].prompt_tokens > 0 == last.completion_tokens


def test_a_long_text_and_many_short_ones(talk: Talk) -> None:
    texts = [("word " * 150).strip(), *(f"text {i}" for i in range(40))]
    found = vectors(talk, texts)
    assert found[7] == pytest.approx(vectors(talk, ["text 6"])[0], abs=0.02)


@pytest.mark.parametrize("inputs", [[], [""], ["a", ""], ["word " * (MAX_SEQ_LEN + 1)]])
def test_senseless_inputs_are_refused(talk: Talk, inputs: list[str]) -> None:
    if inputs in ([""], ["a", ""]) and not refuses_nothing(talk):
        pytest.skip("this tokenizer adds a token to an empty text")
    assert talk.refusal(task="embed", inputs=inputs).param == "input"


def refuses_nothing(talk: Talk) -> bool:
    """True where an empty text has no token at all."""
    request_id = talk.give(task="tokenize", prompt="")
    talk.wait_over(request_id)
    return next(e for e in talk.of(request_id) if isinstance(e, Tokens)).tokens == ()


def test_answers_and_vectors_go_on_together(talk: Talk) -> None:
    answer = talk.give(prompt="Once upon a time", max_tokens=20)
    embedding = talk.give(task="embed", inputs=TEXTS)
    talk.wait_over(answer, embedding)
    assert isinstance(talk.last(answer), Finished)
    assert isinstance(talk.last(embedding), Finished)


def test_a_cancelled_embedding_frees_its_slot(talk: Talk) -> None:
    cancelled = talk.give(task="embed", inputs=TEXTS)
    talk.harness.cancel(cancelled)
    talk.wait_over(cancelled)
    running = [talk.give(prompt="Once upon a time", max_tokens=3) for _ in range(SLOTS)]
    talk.wait_over(*running)
    assert all(isinstance(talk.last(r), Finished) for r in running)


def test_text_to_tokens_and_back(talk: Talk) -> None:
    text = "Routes match, queues fill: one two three."
    found = tokens(talk, text)
    assert len(found.tokens) == len(found.pieces) > 3
    request_id = talk.give(task="detokenize", prompt=list(found.tokens))
    talk.wait_over(request_id)
    (delta,) = (e for e in talk.of(request_id) if isinstance(e, Delta))
    assert delta.text.strip() == text


def test_a_chat_is_counted_as_it_would_be_prefilled(talk: Talk) -> None:
    messages = [{"role": "user", "content": "Say three words."}]
    request_id = talk.give(task="tokenize", messages=messages)
    talk.wait_over(request_id)
    _, finished = talk.say(messages=messages, max_tokens=2)
    assert isinstance(last := talk.last(request_id), Finished)
    assert last.prompt_tokens == finished.prompt_tokens


def test_tokens_that_do_not_exist_are_refused(talk: Talk) -> None:
    assert talk.refusal(task="detokenize", prompt=[2**30]).param == "prompt"


@pytest.mark.e2e
def test_vectors_are_those_of_llama_cpps_own_mean_pooling(talk: Talk, is_llama: bool) -> None:
    if not is_llama:
        pytest.skip("llama.cpp's own")
    import llama_cpp

    peer = llama_cpp.Llama(
        demo_model(), embedding=True, pooling_type=llama_cpp.LLAMA_POOLING_TYPE_MEAN, n_ctx=MAX_SEQ_LEN, verbose=False
    )
    texts = [*TEXTS, "über naïve 模型", "The quick brown fox jumps over the lazy dog. " * 18]
    theirs = np.array([peer.embed(text, normalize=True) for text in texts])
    peer.close()
    assert (vectors(talk, texts) * theirs).sum(axis=1) == pytest.approx([1] * len(texts), abs=1e-3)
