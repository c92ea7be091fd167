"""Bodies of embeddings, ``/tokenize`` and ``/detokenize``, and the shapes of their answers. Pure; no I/O."""

from __future__ import annotations

import base64
import struct
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from laya_desktop.node.engines.base import Tokens, Vector
from laya_desktop.node.server import wire
from laya_desktop.node.server.faults import invalid

if TYPE_CHECKING:
    from laya_desktop.errors import LayaError
    from laya_desktop.node.engines.base import Delta, Started
    from laya_desktop.node.server.choices import Choices
    from laya_desktop.node.server.completions import Outcome

_Token = Annotated[int, msgspec.Meta(ge=0)]


class EmbeddingsBody(msgspec.Struct, kw_only=True):
    """``POST /v1/embeddings``."""

    input: str | list[Any]
    """A text, token ids, or a list of these."""
    model: str | None = None
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """Keep the first so many values of each vector, brought to length 1 again."""

    @property
    def as_base64(self) -> bool:
        """Vectors as little-endian 32-bit floats in base64."""
        return self.encoding_format == "base64"

    @property
    def texts(self) -> list[str | list[int]]:
        """One entry for each vector."""
        if isinstance(self.input, str):
            return [self.input]
        return [self.input] if _is_tokens(self.input) else self.input


class TokenizeBody(msgspec.Struct, kw_only=True):
    """``POST /tokenize``, as llama.cpp's server has it."""

    content: str
    model: str | None = None
    add_special: bool | None = None
    with_pieces: bool | None = None


class DetokenizeBody(msgspec.Struct, kw_only=True):
    """``POST /detokenize``."""

    tokens: list[_Token]
    model: str | None = None


def parse_embeddings(body: dict[str, Any]) -> EmbeddingsBody:
    """The body. Raises LayaError naming the field."""
    sent = wire.convert(body, EmbeddingsBody)
    if not isinstance(sent.input, str) and not _is_tokens(sent.input):
        for i, one in enumerate(sent.input):
            if not isinstance(one, str) and not _is_tokens(one):
                where = f"input[{i}]"
                raise invalid(f"{where}: expected a text or token ids.", where, code="invalid_type")
    return sent


def _is_tokens(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(type(t) is int and t >= 0 for t in value)


def parse_tokenize(body: dict[str, Any]) -> TokenizeBody:
    """The body. Raises LayaError naming the field."""
    return wire.convert(body, TokenizeBody)


def parse_detokenize(body: dict[str, Any]) -> DetokenizeBody:
    """The body. Raises LayaError naming the field."""
    return wire.convert(body, DetokenizeBody)


class _WholeShape:
    """Answers that are never streamed."""

    def opening(self, _started: Started) -> bytes:
        """Nothing."""
        return b""

    def delta(self, _event: Delta) -> bytes:
        """Nothing."""
        return b""

    def closing(self, _outcome: Outcome) -> bytes:
        """Nothing."""
        return b""

    def failed(self, _error: LayaError) -> bytes:
        """Nothing: the answer has not begun."""
        return b""


class EmbeddingShape(_WholeShape):
    """Answers of ``/v1/embeddings``."""

    def __init__(self, model: str, as_base64: bool) -> None:
        self._model, self._as_base64 = model, as_base64

    def whole(self, choices: Choices, outcome: Outcome) -> dict[str, Any]:
        """The vectors in the order of the inputs."""
        found = sorted((e for e in choices.results if isinstance(e, Vector)), key=lambda e: e.index)
        data = [{"object": "embedding", "index": e.index, "embedding": self._values(e.values)} for e in found]
        usage = {"prompt_tokens": outcome.prompt_tokens, "total_tokens": outcome.prompt_tokens}
        return {"object": "list", "data": data, "model": self._model, "usage": usage}

    def _values(self, values: bytes) -> str | tuple[float, ...]:
        if self._as_base64:
            return base64.b64encode(values).decode()
        return struct.unpack(f"<{len(values) // 4}f", values)


class TokenShape(_WholeShape):
    """Answers of ``/tokenize``; a piece that is a part of a character is given as its bytes."""

    def __init__(self, with_pieces: bool) -> None:
        self._with_pieces = with_pieces

    def whole(self, choices: Choices, _outcome: Outcome) -> dict[str, Any]:
        """The tokens."""
        found = next(e for e in choices.results if isinstance(e, Tokens))
        if not self._with_pieces:
            return {"tokens": found.tokens}
        pairs = zip(found.tokens, found.pieces, strict=True)
        return {"tokens": [{"id": token, "piece": _piece(piece)} for token, piece in pairs]}


class TextShape(_WholeShape):
    """Answers of ``/detokenize``."""

    def whole(self, choices: Choices, _outcome: Outcome) -> dict[str, Any]:
        """The text."""
        return {"content": choices.items[0].text}


class CountShape(_WholeShape):
    """Answers of ``/v1/messages/count_tokens``."""

    def whole(self, _choices: Choices, outcome: Outcome) -> dict[str, Any]:
        """How many tokens the prompt has."""
        return {"input_tokens": outcome.prompt_tokens}


def _piece(piece: bytes) -> str | list[int]:
    try:
        return piece.decode()
    except UnicodeDecodeError:
        return list(piece)
