"""Errors that several parts of the server raise. Pure values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laya_desktop.errors import LayaError

if TYPE_CHECKING:
    from collections.abc import Iterable


CLIENT_GONE = 499
"""Status of requests whose client left or whose answer was cancelled (nginx's convention); 4xx is not retried."""


class MethodNotAllowedError(LayaError):
    """405; the answer's ``Allow`` header names the methods that work."""

    def __init__(self, method: str, path: str, allow: Iterable[str]) -> None:
        self.allow = tuple(allow)
        super().__init__(
            f"{path} does not take {method}.",
            hint=f"Use {' or '.join(self.allow)}.",
            code="method_not_allowed",
            status=405,
        )


STOPPING = "the node is stopping"
"""The reason that ``Exchange.on_gone`` gets when the listener's grace is over."""


def stopping() -> LayaError:
    """503: the answer was cut because the node stops."""
    return LayaError(
        f"The answer was cut: {STOPPING}.",
        hint="Send the request again once it runs.",
        code="draining",
        status=503,
        retry_after_s=5.0,
    )


def cancelled(reason: str | None) -> LayaError:
    """499: somebody stopped the request on purpose; clients do not retry it."""
    why = f": {reason}" if reason else ""
    return LayaError(f"The request was cancelled{why}.", code="cancelled", status=CLIENT_GONE)


def invalid(
    message: str, param: str | None = None, *, hint: str | None = None, code: str = "invalid_value"
) -> LayaError:
    """400: a field of the request is not as it must be."""
    return LayaError(message, hint=hint, code=code, status=400, param=param)


def unsupported(param: str, message: str, hint: str | None = None) -> LayaError:
    """400: a field that would change the answer and that the engine cannot honour yet."""
    return LayaError(message, hint=hint, code="unsupported_parameter", status=400, param=param)
