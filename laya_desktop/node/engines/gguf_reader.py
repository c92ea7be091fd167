"""Metadata of a GGUF file, read without loading it. Pure Python, no llama_cpp; blocking file reads, so a pool thread.

Our own reader because the kept one is slow: package ``gguf`` 0.19.0 takes 4.1 s for the 49,152 tokens of SmolLM2 (it
turns every token and merge into an array) and 0.24 s to import; this one skips them and takes about 0.06 s. Format:
https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. Nothing is mapped into memory: a file that shrinks while it
is mapped kills the process.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from laya_desktop.node.engines.gguf_types import BLOCKS, FILE_TYPES

MAGIC = b"GGUF"
_CHUNK = 4 * 1024**2
_HEADER_LIMIT = 256 * 1024**2
_STRING, _ARRAY = 8, 9
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}


class GgufError(Exception):
    """The bytes are no readable GGUF; the message says at which point, as the end of a sentence."""


@dataclass(frozen=True)
class Tensor:
    """One tensor's place in the file."""

    name: str
    elements: int
    type_name: str | None
    size_bytes: int | None
    """None: a type this reader does not know."""
    offset: int
    """From the start of the data section."""


@dataclass(frozen=True)
class Header:
    """What stands before the tensor data. Arrays are given by their length only."""

    metadata: dict[str, str | int | float | bool]
    array_lengths: dict[str, int]
    tensors: tuple[Tensor, ...]
    data_start: int
    file_size: int

    @property
    def data_end(self) -> int:
        """Where the last tensor of known size ends; a shorter file is truncated."""
        return max((self.data_start + t.offset + t.size_bytes for t in self.tensors if t.size_bytes), default=0)

    @property
    def parameters(self) -> int:
        """Elements of all tensors."""
        return sum(t.elements for t in self.tensors)

    @property
    def quantisation(self) -> str | None:
        """The file's declared type, or the tensor type that takes most bytes."""
        declared = self.metadata.get("general.file_type")
        if declared in FILE_TYPES:
            return FILE_TYPES[int(declared)]
        sizes: dict[str, int] = {}
        for t in self.tensors:
            if t.type_name is not None:
                sizes[t.type_name] = sizes.get(t.type_name, 0) + (t.size_bytes or 0)
        return max(sizes, key=sizes.__getitem__) if sizes else None

    def text(self, key: str) -> str | None:
        """A string value, or None."""
        value = self.metadata.get(key)
        return value if isinstance(value, str) else None

    def number(self, key: str) -> int | None:
        """An integer value, or None."""
        value = self.metadata.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def of_architecture(self, key: str) -> int | None:
        """A number under the architecture's own prefix, e.g. ``context_length``."""
        return self.number(f"{self.text('general.architecture')}.{key}")


class _Cursor:
    """Reads forward through the head of a file, in chunks."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._data = b""
        self.at = 0

    def need(self, count: int) -> None:
        """Have ``count`` more bytes at hand."""
        missing = self.at + count - len(self._data)
        if missing <= 0:
            return
        if self.at + count > _HEADER_LIMIT:
            raise GgufError(f"its header claims more than {_HEADER_LIMIT // 1024**2} MiB")
        more = self._stream.read(max(missing, _CHUNK))
        if len(more) < missing:
            raise GgufError("it ends inside its header")
        self._data += more

    def take(self, count: int) -> bytes:
        self.need(count)
        out = self._data[self.at : self.at + count]
        self.at += count
        return out

    def unpack(self, code: str) -> int | float | bool:
        return struct.unpack(f"<{code}", self.take(struct.calcsize(f"<{code}")))[0]  # type: ignore[no-any-return]

    def u32(self) -> int:
        return int(self.unpack("I"))

    def u64(self) -> int:
        return int(self.unpack("Q"))

    def string(self) -> str:
        return self.take(self.u64()).decode("utf-8", "replace")

    def skip_strings(self, count: int) -> None:
        unpack_from = struct.Struct("<Q").unpack_from
        for _ in range(count):
            self.need(8)
            (size,) = unpack_from(self._data, self.at)
            self.need(8 + size)
            self.at += 8 + size


def read_header(path: Path) -> Header:
    """Read the header of a GGUF file.

    Raises:
        GgufError: not a GGUF of version 2 or 3 in little-endian order, or cut off inside the header.
        OSError: as the system gives it.
    """
    with path.open("rb") as stream:
        cursor = _Cursor(stream)
        if cursor.take(4) != MAGIC:
            raise GgufError("it does not begin with GGUF")
        version = cursor.u32()
        if version >= 1 << 16:
            raise GgufError("it is a big-endian GGUF, which this machine cannot read")
        if version not in (2, 3):
            raise GgufError(f"its GGUF version is {version}; versions 2 and 3 can be read")
        tensor_count, value_count = cursor.u64(), cursor.u64()
        if tensor_count > 1_000_000 or value_count > 1_000_000:
            raise GgufError(f"it claims {tensor_count} tensors and {value_count} values")
        metadata: dict[str, str | int | float | bool] = {}
        lengths: dict[str, int] = {}
        for _ in range(value_count):
            key, kind = cursor.string(), cursor.u32()
            if kind == _ARRAY:
                lengths[key] = _skip_array(cursor)
            else:
                metadata[key] = cursor.string() if kind == _STRING else cursor.unpack(_scalar(kind))
        tensors = tuple(_tensors(cursor, tensor_count))
        alignment = metadata.get("general.alignment", 32)
        if not isinstance(alignment, int) or not 0 < alignment <= 1 << 20:
            raise GgufError(f"its alignment is {alignment}")
        start = -(-cursor.at // alignment) * alignment
        return Header(metadata, lengths, tensors, start, path.stat().st_size)


def _scalar(kind: int) -> str:
    if kind not in _SCALARS:
        raise GgufError(f"it has a value of unknown type {kind}")
    return _SCALARS[kind]


def _skip_array(cursor: _Cursor) -> int:
    kind, count = cursor.u32(), cursor.u64()
    if kind == _STRING:
        cursor.skip_strings(count)
    elif kind == _ARRAY:
        raise GgufError("it has an array of arrays")
    else:
        size = count * struct.calcsize(f"<{_scalar(kind)}")
        cursor.need(size)
        cursor.at += size
    return count


def _tensors(cursor: _Cursor, count: int) -> Iterator[Tensor]:
    for _ in range(count):
        name = cursor.string()
        elements = 1
        for _ in range(cursor.u32()):
            elements *= cursor.u64()
        type_name, per_block, block_bytes = BLOCKS.get(cursor.u32(), (None, 1, 0))
        size = elements // per_block * block_bytes if type_name is not None else None
        yield Tensor(name, elements, type_name, size, cursor.u64())
