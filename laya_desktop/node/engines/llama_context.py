"""The context of a loaded model: for answers, or for an encoder's vectors. Worker only.

Parameters and why:

- ``kv_unified`` is off: each slot has its own ``max_seq_len`` cells. A long conversation cannot take cells from the
  others, no request fails for want of cells once it was admitted, and attention looks at its own slot only. Slots that
  share a long prefix would save memory with it on; a local node's callers seldom do.
- ``swa_full`` is off, as in llama-server: models with a sliding window keep only the window.
- ``n_outputs_max`` is the number of slots: one row of logits each, instead of one for each prompt token.
- An encoder (BERT and its kin) gets another context: it keeps no cells, sees a whole text in one batch, and pools.
"""

from __future__ import annotations

import ctypes
from typing import Any

import llama_cpp.llama_cpp as lib

from laya_desktop.node.engines import llama_vectors
from laya_desktop.node.engines.base import EngineLoadError, EngineParams
from laya_desktop.node.engines.llama_log import LoadLog

BATCH_TOKENS = 512
"""Tokens of one decode call: the prefill chunk shares it with the decoding slots."""
_KV_TYPES = {
    name: int(getattr(lib, f"GGML_TYPE_{name.upper()}"))
    for name in ("f32", "f16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0")
}
_FLASH_ATTENTION = {
    "auto": lib.LLAMA_FLASH_ATTN_TYPE_AUTO,
    "on": lib.LLAMA_FLASH_ATTN_TYPE_ENABLED,
    "off": lib.LLAMA_FLASH_ATTN_TYPE_DISABLED,
}


def open_context(params: EngineParams, model: ctypes.c_void_p, path: str, log: LoadLog) -> tuple[ctypes.c_void_p, bool]:
    """The context, and whether the model is an encoder: a first context has no memory, or sees all of a text at once.

    Raises:
        EngineLoadError: there is no memory for it, or it is a model of a kind that cannot be served.
    """
    context = lib.llama_init_from_model(model, _context_params(params))
    if not context:
        raise _context_error(params, log)
    other_kind = bool(lib.llama_model_has_encoder(model)) or bool(lib.llama_model_is_diffusion(model))
    if lib.llama_get_memory(context) and log.causal and not other_kind:
        return context, False
    lib.llama_free(context)
    log.kv_cache.clear()
    log.cache_sizes.clear()
    if other_kind:
        raise _not_served(path, "a model of the T5 family or a diffusion model")
    pooling = llama_vectors.pooling_of(model, params.pooling)
    if pooling == "rank":
        raise _not_served(path, "a model that ranks texts (a reranker)")
    context = lib.llama_init_from_model(model, _encoder_params(params, model, pooling))
    if not context:
        raise _context_error(params, log)
    return context, True


def _context_params(params: EngineParams) -> Any:
    out = lib.llama_context_default_params()
    out.n_ctx = params.slots * params.max_seq_len
    out.n_seq_max = params.slots
    out.n_batch = out.n_ubatch = BATCH_TOKENS
    out.n_outputs_max = params.slots
    out.n_threads = out.n_threads_batch = params.threads
    out.flash_attn_type = _FLASH_ATTENTION[params.flash_attention]
    out.type_k = out.type_v = _KV_TYPES[params.kv_type]
    out.rope_freq_base = params.rope_freq_base or 0.0
    out.rope_freq_scale = params.rope_freq_scale or 0.0
    out.kv_unified = False
    out.swa_full = False
    out.no_perf = True
    return out


def _encoder_params(params: EngineParams, model: ctypes.c_void_p, pooling: llama_vectors.Pooling) -> Any:
    """All texts of a batch at once: its tokens are the longest text's, and each has a row of output.

    llama.cpp plans its graph for a multiple of the sequences, and aborts where the rows of output are not as many.
    """
    out = _context_params(params)
    tokens = min(params.max_seq_len, int(lib.llama_model_n_ctx_train(model)) or params.max_seq_len)
    rows = -(-tokens // llama_vectors.SEQUENCES) * llama_vectors.SEQUENCES
    out.n_ctx = out.n_batch = out.n_ubatch = out.n_outputs_max = rows
    out.n_seq_max = llama_vectors.SEQUENCES
    out.kv_unified = True
    out.embeddings = True
    out.pooling_type = int(getattr(lib, f"LLAMA_POOLING_TYPE_{pooling.upper()}"))
    return out


def _context_error(params: EngineParams, log: LoadLog) -> EngineLoadError:
    reason = log.reason or "llama.cpp gave no reason"
    return EngineLoadError(
        f"The context of model '{params.name}' ({params.slots} slots of {params.max_seq_len:,} tokens) cannot be "
        f"made: {reason}.",
        "Lower max_seq_len or batch_size.",
        "too_large" if "allocate" in reason else "load_failed",
    )


def _not_served(path: str, what: str) -> EngineLoadError:
    return EngineLoadError(
        f"{path} is {what}, which is not supported.",
        "Choose a model that generates text from left to right, or an encoder for embeddings.",
        "unsupported_architecture",
    )
