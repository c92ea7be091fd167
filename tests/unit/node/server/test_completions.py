"""Answer bodies: the fast chunk is the same JSON as the slow one would be."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laya_desktop.node.engines.base import Finished
from laya_desktop.node.records import RequestRecord
from laya_desktop.node.server.completions import Completion, Outcome
from laya_desktop.node.server.openai_api import Operation, operation_of


def events(data: bytes) -> list[Any]:
    parts = data.decode().split("\n\n")
    assert parts.pop() == ""
    return [json.loads(p.removeprefix("data: ")) for p in parts if p != "data: [DONE]"]


@given(st.text(alphabet=st.characters(exclude_categories=("Cs",))), st.text(max_size=10), st.booleans(), st.booleans())
def test_a_delta_is_one_event_with_that_text(text: str, model: str, chat: bool, usage: bool) -> None:
    chunk = Completion("id", model, chat=chat, include_usage=usage).delta(text)
    (event,) = events(chunk)
    choice = event["choices"][0]
    assert (choice["delta"]["content"] if chat else choice["text"]) == text
    assert event["model"] == model
    assert ("usage" in event) == usage


def test_unknown_times_are_null() -> None:
    record = RequestRecord("r", "POST", "/", None, "m")
    outcome = Outcome.of(Finished("r", "length", prompt_tokens=1, completion_tokens=1), record)
    body = Completion("r", "m", chat=True, include_usage=False).whole("x", outcome)
    assert body["timings"] == dict.fromkeys(("queue_ms", "prefill_ms", "ttft_ms", "decode_tokens_per_s"))
    assert body["choices"][0]["finish_reason"] == "length"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("", (Operation.BARE, "")),
        ("/", (Operation.BARE, "")),
        ("/v1", (Operation.BARE, "")),
        ("/chat/completions", (Operation.CHAT, "")),
        ("/v1/chat/completions", (Operation.CHAT, "")),
        ("/v1/models", (Operation.MODELS, "")),
        ("/v1/models/a%2Fb", (Operation.MODEL, "a/b")),
        ("/models/a/b", (Operation.MODEL, "a/b")),
        ("/v1/v1/models", None),
        ("/v1x/models", None),
        ("/chat", None),
    ],
)
def test_paths_of_the_api(path: str, expected: tuple[Operation, str] | None) -> None:
    assert operation_of(path) == expected
