"""Engines under contract, each in this process and behind a worker.

The fake, llama.cpp with the demo model, and PyTorch with a tiny model made on the spot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

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
from tests.helpers.tiny_transformer import tiny_model


def params(kind: str, tiny: Callable[[], str]) -> EngineParams:
    path = {"llama_cpp": demo_model, "transformers": tiny, "fake": lambda: "fake:tokens=1000,itl_ms=1"}[kind]()
    return EngineParams("contract", path, engine=kind, device="cpu", slots=SLOTS, max_seq_len=MAX_SEQ_LEN, threads=2)


@pytest.fixture(
    scope="module",
    params=[
        "fake-direct",
        "fake-worker",
        pytest.param("llama_cpp-direct", marks=pytest.mark.e2e),
        pytest.param("llama_cpp-worker", marks=pytest.mark.e2e),
        "transformers-direct",
        "transformers-worker",
    ],
)
def harness(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harness]:
    kind, _, how = request.param.partition("-")
    wanted = params(kind, lambda: tiny_model(tmp_path_factory))
    made: Harness = DirectHarness(create_engine(kind), wanted) if how == "direct" else WorkerHarness(wanted)
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


@pytest.fixture
def is_torch(request: pytest.FixtureRequest) -> bool:
    return "transformers" in request.node.callspec.params["harness"]
