"""A tiny encoder (BERT) made on the spot, and what it computes, in NumPy: a reference that shares no code with it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.helpers.gguf_writer import write_gguf

WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "▁a", "▁cat", "▁dog", "▁sleeps", "▁runs", "▁fast", "s", "▁.")
CLS, SEP = 2, 3
WIDTH, LAYERS, HEADS, HIDDEN, PLACES = 32, 2, 4, 64, 40
_EPSILON = 1e-6
_CONTROL, _NORMAL = 3, 1


@dataclass(frozen=True)
class TinyBert:
    """The file, and the weights in it as (outputs, inputs)."""

    path: Path
    weights: dict[str, Any]

    def rows(self, tokens: list[int]) -> Any:
        """The last layer's output for each token."""
        w = self.weights
        x = w["token_embd.weight"][tokens] + w["token_types.weight"][0] + w["position_embd.weight"][: len(tokens)]
        x = self._normed(x, "token_embd_norm")
        for i in range(LAYERS):
            b = f"blk.{i}."
            q, k, v = (self._heads(self._linear(x, f"{b}attn_{name}")) for name in "qkv")
            scores = q @ k.transpose(0, 2, 1) / np.sqrt(WIDTH / HEADS)
            share = np.exp(scores - scores.max(axis=-1, keepdims=True))
            mixed = (share / share.sum(axis=-1, keepdims=True)) @ v
            joined = mixed.transpose(1, 0, 2).reshape(len(tokens), WIDTH)
            x = self._normed(x + self._linear(joined, f"{b}attn_output"), f"{b}attn_output_norm")
            up = self._linear(x, f"{b}ffn_up")
            gelu = 0.5 * up * (1 + np.tanh(np.sqrt(2 / np.pi) * (up + 0.044715 * up**3)))
            x = self._normed(x + self._linear(gelu, f"{b}ffn_down"), f"{b}layer_output_norm")
        return x

    def _linear(self, x: Any, name: str) -> Any:
        return x @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def _normed(self, x: Any, name: str) -> Any:
        x = (x - x.mean(axis=-1, keepdims=True)) / np.sqrt(x.var(axis=-1, keepdims=True) + _EPSILON)
        return x * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]

    @staticmethod
    def _heads(x: Any) -> Any:
        return x.reshape(len(x), HEADS, WIDTH // HEADS).transpose(1, 0, 2)


def write_tiny_bert(path: Path, pooling_type: int | None = 1, *, places: int = PLACES, more_words: int = 0) -> TinyBert:
    """Write one.

    Args:
        path: where.
        pooling_type: llama.cpp's number, as the file names it; None: it names none.
        places: the longest text.
        more_words: words of the vocabulary besides ``WORDS``.
    """
    words = [*WORDS, *(f"▁word{i}" for i in range(more_words))]
    shapes: dict[str, tuple[int, ...]] = {
        "token_embd.weight": (len(words), WIDTH),
        "token_types.weight": (2, WIDTH),
        "position_embd.weight": (places, WIDTH),
        **_norm("token_embd_norm"),
    }
    for i in range(LAYERS):
        b = f"blk.{i}."
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            shapes |= {f"{b}{name}.weight": (WIDTH, WIDTH), f"{b}{name}.bias": (WIDTH,)}
        shapes |= {f"{b}ffn_up.weight": (HIDDEN, WIDTH), f"{b}ffn_up.bias": (HIDDEN,)}
        shapes |= {f"{b}ffn_down.weight": (WIDTH, HIDDEN), f"{b}ffn_down.bias": (WIDTH,)}
        shapes |= _norm(f"{b}attn_output_norm") | _norm(f"{b}layer_output_norm")
    random = np.random.default_rng(3)
    weights = {name: (0.5 * random.standard_normal(shape)).astype("<f4") for name, shape in shapes.items()}
    metadata: dict[str, object] = {
        "general.architecture": "bert",
        "bert.block_count": LAYERS,
        "bert.context_length": places,
        "bert.embedding_length": WIDTH,
        "bert.feed_forward_length": HIDDEN,
        "bert.attention.head_count": HEADS,
        "bert.attention.layer_norm_epsilon": _EPSILON,
        "bert.attention.causal": False,
        "tokenizer.ggml.model": "bert",
        "tokenizer.ggml.token_type_count": 2,
        "tokenizer.ggml.tokens": words,
        "tokenizer.ggml.token_type": [_CONTROL if word.startswith("[") else _NORMAL for word in words],
        "tokenizer.ggml.unknown_token_id": 1,
        "tokenizer.ggml.bos_token_id": CLS,
        "tokenizer.ggml.cls_token_id": CLS,
        "tokenizer.ggml.eos_token_id": SEP,
        "tokenizer.ggml.seperator_token_id": SEP,
        "tokenizer.ggml.padding_token_id": 0,
        "tokenizer.ggml.mask_token_id": 4,
    }
    if pooling_type is not None:
        metadata["bert.pooling_type"] = pooling_type
    told = tuple((name, array.shape[::-1], 0, array.nbytes) for name, array in weights.items())
    write_gguf(path, metadata, told, data_bytes=0)
    data = b"".join(a.tobytes() + bytes(-a.nbytes % 32) for a in weights.values())
    path.write_bytes(path.read_bytes() + data)
    return TinyBert(path, weights)


def _norm(name: str) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (WIDTH,), f"{name}.bias": (WIDTH,)}
