"""What is offered where a model does not fit: the least loss first, and nothing that would not fit either."""

from __future__ import annotations

import asyncio
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from laya_desktop.config.schema import ModelConfig
from laya_desktop.node.engines.base import DryRunDone, EngineParams
from laya_desktop.node.memory import estimate
from laya_desktop.node.proposal import STEP_TOKENS, Shape, candidates
from laya_desktop.state.enums import Verdict
from laya_desktop.state.snapshot import Proposal

MIB, GIB = 2**20, 2**30
SHAPE = Shape(slots=4, max_seq_len=4096, fixed_bytes=5 * GIB, cache_bytes=2 * GIB, can_quantise=True)
_SHARES = {None: 1.0, "q8_0": 34 / 64, "q4_0": 18 / 64}


def _needs(shape: Shape, p: Proposal) -> float:
    """By the definition of the figures, told apart from how candidates are found."""
    cells = (p.batch_size or shape.slots) * (p.max_seq_len or shape.max_seq_len)
    cache = shape.cache_bytes * _SHARES[p.kv_type] * cells / (shape.slots * shape.max_seq_len)
    left = shape.gpu_layers - p.gpu_layers if p.gpu_layers else 0
    return shape.fixed_bytes + cache - left * shape.layer_bytes


def _first(limit: float, shape: Shape = SHAPE) -> Proposal:
    return next(candidates(shape, int(limit)))


def test_the_cheapest_loss_comes_first() -> None:
    assert _first(6.1 * GIB) == Proposal(kv_type="q8_0", text="kv_type q8_0")
    shorter = _first(5.9 * GIB)
    assert (shorter.kv_type, shorter.batch_size) == ("q8_0", None)
    assert shorter.max_seq_len is not None
    assert 2048 <= shorter.max_seq_len < 4096
    assert "max_seq_len 3,328 instead of 4,096" in shorter.text
    fewer = _first(5.4 * GIB)
    assert (fewer.batch_size, fewer.max_seq_len) == (1, None)
    least = _first(5.1 * GIB)
    assert (least.batch_size, least.kv_type) == (1, "q8_0")
    assert least.max_seq_len is not None
    assert least.max_seq_len < 2048
    assert _first(5 * GIB + 10 * MIB).kv_type == "q4_0", "nothing else leaves a context"


def test_a_cache_that_may_not_be_quantised_stays() -> None:
    plain = Shape(4, 4096, 5 * GIB, 2 * GIB)
    assert all(p.kv_type is None for limit in (5.1, 5.6, 6, 6.9) for p in candidates(plain, int(limit * GIB)))
    assert _first(6.1 * GIB, plain).max_seq_len == 2048


def test_nothing_is_offered_where_the_weights_alone_are_too_much() -> None:
    assert list(candidates(SHAPE, 5 * GIB)) == []
    assert list(candidates(SHAPE, 0)) == []


def test_layers_leave_the_gpu_before_slots_go() -> None:
    shape = Shape(4, 4096, 4 * GIB, 2 * GIB, gpu_layers=30, layer_bytes=200 * MIB)
    assert _first(4.5 * GIB, shape).gpu_layers == 22
    assert all(p.gpu_layers is None for p in candidates(shape, int(5.9 * GIB)) if p.max_seq_len)


@given(
    st.builds(
        Shape,
        slots=st.integers(1, 64),
        max_seq_len=st.integers(64, 131072),
        fixed_bytes=st.integers(0, 64 * GIB),
        cache_bytes=st.integers(0, 64 * GIB),
        can_quantise=st.booleans(),
        gpu_layers=st.integers(0, 80),
        layer_bytes=st.integers(0, GIB),
    ),
    st.integers(0, 64 * GIB),
)
def test_every_candidate_changes_something_and_fits(shape: Shape, limit: int) -> None:
    if shape.fixed_bytes + shape.cache_bytes <= limit:
        return  # it fits as it is, nobody asks
    for offered in candidates(shape, limit):
        assert offered.text
        assert _needs(shape, offered) <= limit + 1
        assert (offered.batch_size or 1) < max(2, shape.slots)
        assert offered.max_seq_len is None or STEP_TOKENS <= offered.max_seq_len < shape.max_seq_len
        assert offered.gpu_layers is None or 0 < offered.gpu_layers < shape.gpu_layers


def _dry(params: EngineParams, *, window_bytes: int = 0) -> DryRunDone:
    """A model whose cache has a part that no context makes smaller."""
    share = _SHARES["q8_0"] if params.kv_type == "q8_0" else _SHARES["q4_0"] if params.kv_type == "q4_0" else 1.0
    cache = params.slots * params.max_seq_len * share * 2 * GIB / (4 * 4096)
    return DryRunDone("CPU", 4 * GIB, max(round(cache), window_bytes), GIB, 0, 33)


def _estimated(free: float, window_bytes: int = 0) -> tuple[Proposal | None, str, int]:
    asked = 0

    async def dry_run(params: EngineParams) -> DryRunDone:
        nonlocal asked
        asked += 1
        return _dry(params, window_bytes=window_bytes)

    model = ModelConfig(name="m", path="m.gguf", max_seq_len=4096, batch_size=4)
    found = asyncio.run(estimate(model, Path("m.gguf"), "cpu", int(free), dry_run))
    assert found.verdict is Verdict.WILL_NOT_FIT
    return found.proposal, found.reason, asked


def test_an_estimate_offers_what_was_estimated_to_fit() -> None:
    proposal, reason, asked = _estimated(6.9 * GIB)
    assert proposal == Proposal(
        kv_type="q8_0",
        max_seq_len=proposal.max_seq_len if proposal else None,
        text=reason[reason.index("kv_type") : -1],
    )
    assert asked == 2
    assert "It would fit with kv_type q8_0" in reason


def test_a_candidate_that_does_not_hold_is_passed_over() -> None:
    proposal, reason, asked = _estimated(5.6 * GIB, window_bytes=GIB)
    assert proposal is None, "the cache never gets below 1 GiB"
    assert "No settings would make it fit" in reason
    assert 2 < asked <= 7
