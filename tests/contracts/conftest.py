"""Engines under contract: the fake and llama.cpp with the demo model, each in this process and behind a worker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from laya_desktop.node.engines.base import EngineParams
from laya_desktop.node.engines.worker_main import create_engine
from tests.helpers.engine_harness import (
    MAX_SEQ_LEN,
    SLOTS,
    DirectHarness,
    Harness,
    Talk,
    WorkerHarness,
    demo_model,
)


def params(kind: str) -> EngineParams:
    path = demo_model() if kind == "llama_cpp" else "fake:tokens=1000,itl_ms=1"
    return EngineParams("contract", path, engine=kind, device="cpu", slots=SLOTS, max_seq_len=MAX_SEQ_LEN, threads=2)


@pytest.fixture(
    scope="module",
    params=[
        "fake-direct",
        "fake-worker",
        pytest.param("llama_cpp-direct", marks=pytest.mark.e2e),
        pytest.param("llama_cpp-worker", marks=pytest.mark.e2e),
    ],
)
def harness(request: pytest.FixtureRequest) -> Iterator[Harness]:
    kind, _, how = request.param.partition("-")
    made: Harness = DirectHarness(create_engine(kind), params(kind)) if how == "direct" else WorkerHarness(params(kind))
    yield made
    made.close()


@pytest.fixture
def talk(harness: Harness) -> Iterator[Talk]:
    talk = Talk(harness)
    yield talk
    for request_id in {e.request_id for e in harness.events}:
        harness.cancel(request_id)
    harness.wait(lambda: all(talk.over(e.request_id) for e in harness.events))
    harness.events.clear()


@pytest.fixture
def is_llama(request: pytest.FixtureRequest) -> bool:
    return "llama_cpp" in request.node.callspec.params["harness"]
