"""KV caches of a PyTorch model: one a slot, several joined for a step of all decoding slots. Worker only.

Rows of different length are joined with padding on the left, which the attention mask hides; positions are given
explicitly, so a token's place is its own and not the row's. Joining and parting copy the caches, which happens only
when a request joins or leaves. Caches that are more than keys and values of every token (sliding windows, recurrent
states) are not joined: their slots take turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer


class SlotCache:
    """Keys and values of one slot, on the model's device."""

    def __init__(self, config: Any) -> None:
        self._config = config
        self.past: Any = DynamicCache(config=config)

    @property
    def plain(self) -> bool:
        """True where every layer keeps exactly the keys and values of every token."""
        return all(type(layer) is DynamicLayer and layer.keys is not None for layer in self.past.layers)

    def clear(self) -> None:
        """Forget everything."""
        self.past = DynamicCache(config=self._config)

    def trim(self, tokens: int) -> bool:
        """Keep the first ``tokens`` tokens. False: this kind of cache cannot, and it is empty now."""
        if not tokens or not self.plain:
            self.clear()
            return not tokens
        kept = [(layer.keys[:, :, :tokens], layer.values[:, :, :tokens]) for layer in self.past.layers]
        self.past = _cache_of(kept)
        return True


class JoinedCache:
    """The caches of several slots as the rows of one batch."""

    def __init__(self, caches: Sequence[SlotCache], lengths: Sequence[int]) -> None:
        width = max(lengths)
        self.lengths = list(lengths)
        self.width = width
        layers = []
        for parts in zip(*(c.past.layers for c in caches), strict=True):
            keys = torch.cat([_padded(p.keys, width) for p in parts])
            values = torch.cat([_padded(p.values, width) for p in parts])
            layers.append((keys, values))
        self.past = _cache_of(layers)
        self.mask = torch.zeros((len(caches), width), dtype=torch.long, device=layers[0][0].device)
        for row, length in enumerate(lengths):
            self.mask[row, width - length :] = 1
        for cache in caches:
            cache.clear()  # the rows are the caches now; both would be twice the memory

    def grown(self) -> Any:
        """The attention mask for one more token in each row; counts that token."""
        self.mask = torch.cat([self.mask, self.mask.new_ones((len(self.lengths), 1))], dim=-1)
        self.lengths = [n + 1 for n in self.lengths]
        self.width += 1
        return self.mask

    def part(self, caches: Sequence[SlotCache]) -> None:
        """Give every row back to its slot."""
        for row, cache in enumerate(caches):
            start = self.width - self.lengths[row]
            rows = [
                (layer.keys[row : row + 1, :, start:].clone(), layer.values[row : row + 1, :, start:].clone())
                for layer in self.past.layers
            ]
            cache.past = _cache_of(rows)


def _padded(values: Any, width: int) -> Any:
    return torch.nn.functional.pad(values, (0, 0, width - values.shape[-2], 0))


def _cache_of(layers: Sequence[tuple[Any, Any]]) -> Any:
    cache = DynamicCache()
    for index, (keys, values) in enumerate(layers):
        cache.update(keys, values, index)
    return cache
