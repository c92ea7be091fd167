"""Which weights are copied for the processor, by llama.cpp's rules of the pinned release."""

from __future__ import annotations

from laya_desktop.node.engines.gguf_reader import Header, Tensor
from laya_desktop.node.engines.llama_repack import repacked_bytes, repacked_types

X86 = "CPU : SSE3 = 1 | AVX = 1 | AVX2 = 1 | FMA = 1 | REPACK = 1 | "


def _header(*tensors: tuple[str, str, int]) -> Header:
    return Header({}, {}, tuple(Tensor(name, 1, kind, size, 0) for name, kind, size in tensors), 0, 0)


def test_only_where_the_build_and_the_processor_do_it() -> None:
    assert "Q4_K" in repacked_types(X86)
    assert "Q6_K" not in repacked_types(X86)
    assert "Q6_K" in repacked_types("CPU : NEON = 1 | DOTPROD = 1 | REPACK = 1 | ")
    assert repacked_types("CPU : AVX2 = 1 | ") == frozenset()


def test_what_is_multiplied_and_of_such_a_type_counts() -> None:
    types = repacked_types(X86)
    layer, embedding = ("blk.0.ffn_up.weight", "Q4_K", 7), ("token_embd.weight", "Q4_K", 100)
    others = ("blk.0.attn_norm.weight", "F32", 50), ("blk.0.ffn_down.weight", "Q6_K", 60)
    assert repacked_bytes([_header(layer, embedding, *others, ("output.weight", "Q6_K", 9))], types) == 7
    assert repacked_bytes([_header(layer, embedding, *others)], types) == 107, "the output layer uses the embeddings"
    assert repacked_bytes([_header(layer), _header(layer)], types) == 14, "the parts of a split model"
