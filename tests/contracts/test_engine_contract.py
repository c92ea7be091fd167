"""What every engine does, whoever it is and wherever it runs."""

from __future__ import annotations

import pytest

from laya_desktop.node.engines.base import Delta, Finished, Prefilled, Refused, Sampling, Started
from tests.helpers.engine_harness import MAX_SEQ_LEN, SLOTS, DirectHarness, Harness, Talk

GREEDY = Sampling(temperature=0)
STORY = "Once upon a time there was a little"


def test_reports_what_it_loaded(harness: Harness, is_llama: bool, is_torch: bool) -> None:
    loaded = harness.loaded
    assert (loaded.slots, loaded.max_seq_len) == (SLOTS, MAX_SEQ_LEN)
    assert loaded.device == ("CPU" if is_llama or is_torch else "fake")
    assert loaded.load_s > 0
    if is_llama:
        assert loaded.has_chat_template
        assert (loaded.offloaded_layers, loaded.total_layers) == (0, 31)
        assert loaded.weights_bytes is not None
        assert loaded.weights_bytes > 90_000_000
    elif is_torch:
        assert loaded.has_chat_template
        assert (loaded.offloaded_layers, loaded.total_layers) == (0, 2)
        assert loaded.weights_bytes == pytest.approx(474_944, rel=0.1)
        assert loaded.kv_cache_bytes == SLOTS * MAX_SEQ_LEN * 2 * 2 * 32 * 4
    else:
        assert loaded.weights_bytes is None


def test_progress_ends_at_one(harness: Harness) -> None:
    progress = harness.progress  # type: ignore[attr-defined]
    assert progress == sorted(progress)
    assert progress[-1] == 1.0


def test_events_come_in_order_and_add_up(talk: Talk) -> None:
    request_id = talk.give(prompt=STORY, max_tokens=12, sampling=GREEDY)
    talk.wait_over(request_id)
    started, prefilled, *deltas, finished = talk.of(request_id)
    assert isinstance(started, Started)
    assert isinstance(prefilled, Prefilled)
    assert isinstance(finished, Finished)
    assert all(isinstance(d, Delta) and d.text for d in deltas)
    assert sum(d.tokens for d in talk.deltas(request_id)) == finished.completion_tokens == 12
    assert finished.finish_reason == "length"
    assert started.prompt_tokens == prefilled.prompt_tokens == finished.prompt_tokens > 0
    assert finished.cached_tokens == started.cached_tokens < started.prompt_tokens
    assert finished.prefill_s is not None
    assert finished.decode_s is not None
    assert prefilled.prefill_s == finished.prefill_s > 0


def test_greedy_answers_repeat(talk: Talk) -> None:
    first, _ = talk.say(prompt=STORY, max_tokens=16, sampling=GREEDY)
    second, _ = talk.say(prompt=STORY, max_tokens=16, sampling=GREEDY)
    assert first == second != ""


def test_a_seed_repeats_and_seeds_differ(talk: Talk) -> None:
    def say(seed: int) -> str:
        return talk.say(prompt=STORY, max_tokens=12, sampling=Sampling(temperature=1.0, seed=seed))[0]

    texts = [say(seed) for seed in (1, 2, 3)]
    assert texts == [say(seed) for seed in (1, 2, 3)]
    assert len(set(texts)) > 1


@pytest.mark.parametrize("seed", [-1, 2**32 - 1, 2**63])
def test_any_integer_is_a_seed(talk: Talk, seed: int) -> None:
    sampling = Sampling(temperature=1.0, seed=seed)
    first, _ = talk.say(prompt=STORY, max_tokens=8, sampling=sampling)
    assert first == talk.say(prompt=STORY, max_tokens=8, sampling=sampling)[0]


@pytest.mark.parametrize("length", [1, 3, 9])
def test_stop_strings_end_the_answer_and_never_leak(talk: Talk, length: int) -> None:
    whole, _ = talk.say(prompt=STORY, max_tokens=16, sampling=GREEDY)
    at = len(whole) // 2
    stop = whole[at : at + length]
    text, finished = talk.say(prompt=STORY, max_tokens=16, sampling=GREEDY, stop=(stop, "never said"))
    assert text == whole[: whole.index(stop)]
    assert finished.finish_reason == "stop"


def test_a_stop_string_that_only_began_is_given_out(talk: Talk) -> None:
    whole, _ = talk.say(prompt=STORY, max_tokens=16, sampling=GREEDY)
    for stop in (whole[-4:] + "#", whole[5:12] + "#"):
        text, finished = talk.say(prompt=STORY, max_tokens=16, sampling=GREEDY, stop=(stop,))
        assert text == whole
        assert finished.finish_reason == "length"


def test_characters_are_never_split(talk: Talk) -> None:
    request_id = talk.give(prompt="Emojis: 🙂 🎉 ", max_tokens=24, sampling=GREEDY)
    talk.wait_over(request_id)
    text = talk.text(request_id)
    assert "\ufffd" not in text
    assert any(ord(c) > 0xFFFF for c in text), text


def test_context_overflow_is_refused_with_numbers(talk: Talk) -> None:
    refused = talk.refusal(prompt="word " * 300, max_tokens=4)
    assert (refused.code, refused.status, refused.param) == ("context_length_exceeded", 400, "prompt")
    assert str(MAX_SEQ_LEN) in refused.message
    assert any(n in refused.message for n in ("300", "301"))
    assert refused.hint is not None
    assert str(MAX_SEQ_LEN - 1) in refused.hint


def test_the_end_of_the_context_ends_the_answer(talk: Talk) -> None:
    _, finished = talk.say(prompt="a b c d e f g h " * 31, sampling=GREEDY)
    assert finished.finish_reason == "length"
    assert finished.prompt_tokens + finished.completion_tokens == MAX_SEQ_LEN


def test_the_longest_prompt_gets_one_token(talk: Talk) -> None:
    _, finished = talk.say(prompt=[100] * (MAX_SEQ_LEN - 1), sampling=GREEDY)
    assert (finished.prompt_tokens, finished.completion_tokens) == (MAX_SEQ_LEN - 1, 1)


@pytest.mark.parametrize("fields", [{"prompt": ""}, {"prompt": []}, {"prompt": STORY, "max_tokens": 0}])
def test_senseless_requests_are_refused(talk: Talk, fields: dict[str, object]) -> None:
    assert talk.refusal(**fields).status == 400
    assert talk.say(prompt=STORY, max_tokens=1)[1].completion_tokens == 1


def test_cancel_frees_the_slot_and_harms_nobody(talk: Talk) -> None:
    doomed = talk.give(prompt=STORY, sampling=GREEDY)
    other = talk.give(prompt=STORY, max_tokens=20, sampling=GREEDY)
    talk.harness.wait(lambda: len(talk.deltas(doomed)) >= 3)
    talk.harness.cancel(doomed)
    talk.harness.wait(lambda: talk.over(doomed))
    last = talk.last(doomed)
    assert isinstance(last, Finished)
    assert last.finish_reason == "cancelled"
    assert last.completion_tokens < MAX_SEQ_LEN - 20
    third = talk.give(prompt=STORY, max_tokens=2)
    talk.wait_over(third, other)
    assert isinstance(talk.last(third), Finished)
    assert talk.last(other).completion_tokens == 20  # type: ignore[union-attr]


def test_cancelling_a_stranger_does_nothing(talk: Talk) -> None:
    running = talk.give(prompt=STORY, max_tokens=6)
    talk.harness.cancel("nobody")
    talk.wait_over(running)
    assert {e.request_id for e in talk.harness.events} == {running}


def test_slots_decode_together(talk: Talk) -> None:
    first = talk.give(prompt=STORY, max_tokens=30, sampling=GREEDY)
    talk.harness.wait(lambda: len(talk.deltas(first)) >= 3)
    second = talk.give(prompt="The sea is", max_tokens=6, sampling=GREEDY)
    talk.wait_over(first, second)
    assert talk.of(first)[0].slot_id != talk.of(second)[0].slot_id  # type: ignore[union-attr]
    order = [e.request_id for e in talk.harness.events]
    assert order.index(second) < len(order) - 1 - order[::-1].index(second) < order.index(first) + len(order) - 1
    between = order[order.index(second) : len(order) - order[::-1].index(second)]
    assert between.count(first) >= 5, "the first one stood still while the second was served"
    assert order[-1] == first


def test_no_slot_is_given_twice(talk: Talk, harness: Harness) -> None:
    running = [talk.give(prompt=STORY, max_tokens=40) for _ in range(SLOTS)]
    if isinstance(harness, DirectHarness):
        assert harness.engine.free_slots == 0
        with pytest.raises(RuntimeError, match="slot"):
            talk.give(prompt=STORY)
    else:
        refused = talk.refusal(prompt=STORY)
        assert (refused.code, refused.status) == ("no_free_slot", 503)
    talk.wait_over(*running)
    assert {talk.of(r)[0].slot_id for r in running} == set(range(SLOTS))  # type: ignore[union-attr]


def test_chats_are_answered(talk: Talk) -> None:
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Say hello."}]
    text, finished = talk.say(messages=messages, max_tokens=12, sampling=GREEDY)
    assert text
    parts = [messages[0], {"role": "user", "content": [{"type": "text", "text": "Say hello."}]}]
    again, as_parts = talk.say(messages=parts, max_tokens=12, sampling=GREEDY)
    if finished.prompt_tokens > 8:  # the fake counts words
        assert (again, as_parts.prompt_tokens) == (text, finished.prompt_tokens)


def test_stats_count_every_token(talk: Talk) -> None:
    before = talk.harness.stats()
    _, finished = talk.say(prompt=STORY, max_tokens=7, sampling=Sampling(seed=1))
    after = talk.harness.stats()
    assert len(after.slot_tokens) == SLOTS
    assert after.prefill_tokens - before.prefill_tokens == finished.prompt_tokens
    assert after.decode_tokens - before.decode_tokens == finished.completion_tokens == 7


def test_all_slots_are_free_in_the_end(harness: Harness) -> None:
    if isinstance(harness, DirectHarness):
        assert harness.engine.free_slots == SLOTS
        assert not harness.engine.busy
    assert not [e for e in harness.events if isinstance(e, Refused)]
