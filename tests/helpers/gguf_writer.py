"""Small GGUF files made for tests."""

from __future__ import annotations

import struct
from pathlib import Path


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _value(value: object) -> bytes:
    if isinstance(value, bool):
        return struct.pack("<I?", 7, value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    if isinstance(value, str):
        return struct.pack("<I", 8) + _string(value)
    assert isinstance(value, list)
    if value and isinstance(value[0], str):
        return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(_string(v) for v in value)
    return struct.pack("<IIQ", 9, 5, len(value)) + struct.pack(f"<{len(value)}i", *value)


def write_gguf(
    path: Path,
    metadata: dict[str, object] | None = None,
    tensors: tuple[tuple[str, tuple[int, ...], int, int], ...] = (("w", (32, 2), 2, 36),),
    *,
    data_bytes: int | None = None,
    version: int = 3,
) -> Path:
    """Write a GGUF file.

    Args:
        path: where.
        metadata: values; ints as u32, floats as f32.
        tensors: name, dimensions, ggml type and size in bytes of each.
        data_bytes: length of the data section; None: what the tensors need.
        version: of the format.
    """
    metadata = {"general.architecture": "llama"} | (metadata or {})
    out = bytearray(b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(metadata)))
    for key, value in metadata.items():
        out += _string(key) + _value(value)
    offset = 0
    for name, dims, kind, size in tensors:
        out += _string(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, offset)
        offset += -(-size // 32) * 32
    out += bytes(-len(out) % 32)
    path.write_bytes(out + bytes(offset if data_bytes is None else data_bytes))
    return path


def with_metadata(source: Path, target: Path, metadata: dict[str, object], data_start: int) -> Path:
    """A copy of a GGUF file with more metadata; ``data_start`` is where the source's tensors begin."""
    data = source.read_bytes()
    version, tensors, count = struct.unpack_from("<IQQ", data, 4)
    head = b"GGUF" + struct.pack("<IQQ", version, tensors, count + len(metadata))
    head += b"".join(_string(key) + _value(value) for key, value in metadata.items()) + data[24:data_start]
    target.write_bytes(head + bytes(-len(head) % 32) + data[data_start:])
    return target
