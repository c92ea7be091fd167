"""How fast a placement decodes, tried for real with a short context. Worker only.

The weights are loaded for it, mapped from the file where that is possible; the context is small, so that a trial takes
little besides. Every step reads all weights, as each token of an answer does.
"""

from __future__ import annotations

import statistics
import time

import llama_cpp.llama_cpp as lib
import msgspec

from laya_desktop.node.engines.base import EngineLoadError, EngineParams, ProgressSink
from laya_desktop.node.engines.llama_batch import Batch
from laya_desktop.node.engines.llama_model import OpenModel, Placement, open_model

_CONTEXT_TOKENS = 256
_WARM_STEPS, _TIMED_STEPS = 2, 9


def tokens_per_s(params: EngineParams, placement: Placement, progress: ProgressSink | None = None) -> float | None:
    """One sequence's rate there; None where it cannot be loaded so, or makes no tokens."""
    trial = msgspec.structs.replace(params, slots=1, max_seq_len=_CONTEXT_TOKENS, mmap=True, mlock=False)
    try:
        opened = open_model(trial, placement, progress)
    except EngineLoadError:
        return None
    try:
        return None if opened.encodes else _decode(opened)
    finally:
        opened.close()


def _decode(opened: OpenModel) -> float | None:
    """By the median step, which a busy moment of the machine does not move."""
    token = max(int(lib.llama_vocab_bos(lib.llama_model_get_vocab(opened.model))), 0)
    batch = Batch(1, 1)
    took_s = []
    for position in range(_WARM_STEPS + _TIMED_STEPS):
        began_s = time.perf_counter()
        batch.clear()
        batch.add(0, position, [token], output=True)
        if batch.decode(opened.context):
            return None
        lib.llama_synchronize(opened.context)
        took_s.append(time.perf_counter() - began_s)
    return 1.0 / max(statistics.median(took_s[_WARM_STEPS:]), 1e-9)
