"""Checks of a request head beyond llhttp's own: whatever could be read as two different requests is refused.

Pure functions on one parsed head. llhttp (through httptools, nothing lenient switched on) already refuses both lengths
together, repeated or malformed Content-Length, unknown transfer codings at the end, bare LF, folded headers, NUL, and
a space before the colon; ``tests/integration/test_http_smuggling.py`` holds it to that.
"""

from __future__ import annotations

from laya_desktop.errors import LayaError

HEAD_LIMIT_BYTES = 16 * 1024
METHODS = {m.encode(): m for m in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")}

_SINGLE = frozenset(
    {"host", "content-length", "transfer-encoding", "content-type", "authorization", "x-api-key", "origin", "expect"}
)
_LOOKALIKES = ("content_length", "transfer_encoding")


def bad_request(message: str, *, status: int = 400, code: str = "bad_request", hint: str | None = None) -> LayaError:
    """A request that is refused as HTTP, before any API sees it."""
    return LayaError(message, hint=hint, code=code, status=status)


def head_too_large() -> LayaError:
    """431."""
    return bad_request(
        f"The request line and headers are larger than {HEAD_LIMIT_BYTES // 1024} KiB.",
        status=431,
        code="head_too_large",
        hint="Send fewer or shorter headers; prompts belong in the body.",
    )


def body_too_large(limit_bytes: int) -> LayaError:
    """413."""
    return bad_request(
        f"The body is larger than this node takes ({limit_bytes} bytes).",
        status=413,
        code="body_too_large",
        hint="Send less, or raise server.max_body.",
    )


def join_repeated(headers: dict[str, str], name: str, value: str) -> str | None:
    """Add a repeated header to the earlier one; returns the name where repeating is ambiguous, else None."""
    if name in _SINGLE:
        return name
    headers[name] = f"{headers[name]}{'; ' if name == 'cookie' else ', '}{value}"
    return None


def check_head(version: str, method: str | None, headers: dict[str, str], repeated: str | None) -> LayaError | None:
    """The fault of a head after which the connection must be closed, or None."""
    if version not in ("1.1", "1.0"):
        return bad_request(f"HTTP/{version} is not spoken here.", status=505, code="http_version", hint="Use HTTP/1.1.")
    if repeated is not None:
        return bad_request(f"The header {repeated} is there twice.", hint="Send it once.")
    if any(name in headers for name in _LOOKALIKES):
        return bad_request("A header is spelt like one that frames the body.", hint="Write it with a hyphen.")
    coding = headers.get("transfer-encoding")
    if coding is not None:
        if version == "1.0":
            return bad_request("HTTP/1.0 has no Transfer-Encoding.", hint="Use HTTP/1.1 or Content-Length.")
        if coding.lower() != "chunked":
            return bad_request(
                f"The transfer coding '{coding}' is not supported.",
                code="transfer_coding",
                hint="Send the body as it is, or chunked.",
            )
    if method is None:
        return bad_request(
            "This method is not supported.",
            status=501,
            code="method_not_supported",
            hint=f"Use one of {', '.join(METHODS.values())}.",
        )
    return None


def check_expect(headers: dict[str, str]) -> LayaError | None:
    """417 for an expectation that nobody can meet."""
    expect = headers.get("expect")
    if expect is None or expect.lower() == "100-continue":
        return None
    return bad_request(
        f"The expectation '{expect}' cannot be met.", status=417, code="expectation_failed", hint="Leave Expect out."
    )
