"""The one error type of the product. Pure values; used from every thread; imports nothing of ours.

An error says what happened, where, and what to do next. The HTTP body, the log line, the form and the banner
share its text; tracebacks stay in the log.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


class LayaError(Exception):
    """A fault with a way out.

    Attributes:
        message: what happened and where, as a full sentence.
        hint: what to do next, as a full sentence, or None.
        code: stable machine-readable word, e.g. ``model_not_found``.
        status: HTTP status that fits the fault.
        param: the request field or configuration key at fault, or None.
        retry_after_s: for 429 and 503, seconds after which a retry makes sense, or None.
    """

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        code: str = "internal_error",
        status: int = 500,
        param: str | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code
        self.status = status
        self.param = param
        self.retry_after_s = retry_after_s

    def __str__(self) -> str:
        return f"{self.message} {self.hint}" if self.hint else self.message

    @property
    def type(self) -> str:
        """The OpenAI error class of the status (``invalid_request_error``, ``server_error`` …)."""
        return _TYPES.get(self.status, "invalid_request_error" if self.status < 500 else "server_error")

    def to_wire(self) -> dict[str, Any]:
        """The OpenAI error body."""
        return {"error": {"message": str(self), "type": self.type, "param": self.param, "code": self.code}}


_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault of a configuration: ``file:line:column: key: message``.

    Attributes:
        message: what is wrong and what to write instead.
        loc: path of the offending key, e.g. ``("routes", 0, "target")``; empty for the whole file.
        line: 1-based line in the file, or None where the configuration has no file (a form).
        column: 1-based column, or None.
    """

    message: str
    loc: tuple[str | int, ...] = ()
    line: int | None = None
    column: int | None = None

    @property
    def key(self) -> str:
        """The path as people write it: ``routes[0].target``."""
        text = ""
        for part in self.loc:
            text += f"[{part}]" if isinstance(part, int) else (f".{part}" if text else part)
        return text

    def render(self, source: str) -> str:
        """One line for a terminal or a log, e.g. ``app.yaml:3:5: models[0].device: …``."""
        place = source if self.line is None else f"{source}:{self.line}:{self.column or 1}"
        return f"{place}: {self.key}: {self.message}" if self.loc else f"{place}: {self.message}"


class ConfigError(LayaError):
    """A configuration that was refused, with every problem found, not only the first."""

    def __init__(self, source: str | Path, problems: Iterable[Problem]) -> None:
        self.source = str(source)
        self.problems = tuple(problems)
        count = len(self.problems)
        lines = "\n".join(p.render(self.source) for p in self.problems)
        super().__init__(
            f"{self.source}: {count} problem{'s' if count != 1 else ''}.\n{lines}",
            code="invalid_config",
            status=400,
        )


def near(word: str, known: Iterable[str]) -> str:
    """`` Did you mean 'x'?`` with the nearest known word, or an empty string."""
    found = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f" Did you mean '{found[0]}'?" if found else ""
