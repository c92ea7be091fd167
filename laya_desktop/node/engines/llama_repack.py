"""Which weights llama.cpp copies into another layout for the CPU. Pure.

The copies speed up products and stand beside the mapped file. A dry run names their buffer and gives its size as zero,
so they are counted here from the file's header by the rules of the pinned release.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from laya_desktop.node.engines.gguf_reader import Header

_BY_FEATURE = {
    "AVX2": frozenset({"Q4_0", "Q4_K", "IQ4_NL", "MXFP4"}),
    "AVX512": frozenset({"Q2_K"}),
    "DOTPROD": frozenset({"Q4_0", "Q4_K", "Q5_K", "Q6_K", "Q8_0", "IQ4_NL", "MXFP4"}),
}
"""Tensor types that are repacked where the processor has that feature, as ``llama_print_system_info`` names it."""
_NOT_MULTIPLIED = re.compile(r"(^|\.)(token_embd|token_types|position_embd|per_layer_token_embd)\.")


def repacked_types(system_info: str) -> frozenset[str]:
    """Of this build on this processor; ``system_info`` is llama.cpp's own line about both."""
    has = set(re.findall(r"(\w+) = 1", system_info))
    if "REPACK" not in has:
        return frozenset()
    return frozenset().union(*(types for feature, types in _BY_FEATURE.items() if feature in has))


def repacked_bytes(headers: Sequence[Header], types: frozenset[str]) -> int:
    """Bytes of the copies of a model whose layers all lie on the CPU.

    Embeddings are looked up and not multiplied, so they stay as they are, unless the output layer uses them too.
    """
    tensors = [tensor for header in headers for tensor in header.tensors]
    tied = all(tensor.name != "output.weight" for tensor in tensors)
    return sum(
        tensor.size_bytes or 0
        for tensor in tensors
        if tensor.type_name in types
        and (not _NOT_MULTIPLIED.search(tensor.name) or (tied and tensor.name == "token_embd.weight"))
    )
