"""What callers are told when an upstream fails them: which one, what it did, what to do next. Pure; any thread."""

from __future__ import annotations

import socket
import ssl

from laya_desktop.errors import LayaError

_CHECK = "Check that the server runs there, and the url in upstreams."


def unreachable(name: str, url: str, fault: OSError | UnicodeError) -> LayaError:
    """No connection came about."""
    hint = _CHECK
    if isinstance(fault, ssl.SSLCertVerificationError):
        why, hint = (
            f"its certificate is not trusted ({fault.verify_message})",
            ("Use the name that the certificate was made for, or add its issuer to this system's certificates."),
        )
    elif isinstance(fault, ssl.SSLError):
        why, hint = "it does not speak TLS there", "Write http:// instead of https://, or correct the port."
    elif isinstance(fault, socket.gaierror | UnicodeError):
        why = "its host name is not known"
    elif isinstance(fault, ConnectionRefusedError):
        why = "nothing listens there"
    else:
        why = fault.strerror or str(fault) or type(fault).__name__
    return LayaError(
        f"Upstream '{name}' cannot be reached at {url}: {why}.", hint=hint, code="upstream_unreachable", status=502
    )


def broken(name: str, reason: str) -> LayaError:
    """The connection did not bring an answer, or not all of it; ``reason`` ends the sentence."""
    return LayaError(
        f"Upstream '{name}' {reason}.",
        hint="Look into its log; try again once it is well.",
        code="upstream_broken",
        status=502,
    )


def slow(name: str, what: str) -> LayaError:
    """A time limit passed; ``what`` says which, as the end of the sentence."""
    return LayaError(
        f"Upstream '{name}' {what}.",
        hint="It may be overloaded: try again later, or raise the route's timeout.",
        code="upstream_timeout",
        status=504,
    )


def no_connection_in_time(name: str, url: str, limit_s: float) -> LayaError:
    """Connecting took too long."""
    return LayaError(
        f"Upstream '{name}' did not accept a connection at {url} within {limit_s:.3g} s.",
        hint=f"{_CHECK} A slow network needs a longer connect_timeout.",
        code="upstream_unreachable",
        status=504,
    )


def down(name: str, error: str | None, retry_after_s: float) -> LayaError:
    """The circuit is open."""
    return LayaError(
        f"Upstream '{name}' is down, so this request was not sent to it. {error or ''}".rstrip(),
        hint=f"It is tried again in {max(1, round(retry_after_s))} s.",
        code="upstream_down",
        status=503,
        retry_after_s=retry_after_s,
    )


def key_missing(name: str, key_name: str) -> LayaError:
    """The keyring has no such key."""
    return LayaError(
        f"Upstream '{name}' needs the key '{key_name}', and none of that name is stored.",
        hint=f"Run 'laya-desktop key set {key_name}' on the node's machine.",
        code="upstream_key_missing",
        status=502,
    )


def key_unusable(name: str, key_name: str) -> LayaError:
    """The stored key could break out of its header, or cannot be sent at all."""
    return LayaError(
        f"The stored key '{key_name}' of upstream '{name}' has characters that a header cannot hold.",
        hint=f"Store it again with 'laya-desktop key set {key_name}'.",
        code="upstream_key_unusable",
        status=502,
    )


def gone(name: str) -> LayaError:
    """The pool is closed or has no such upstream."""
    return LayaError(
        f"There is no upstream '{name}' any more.",
        hint="The configuration changed or the node is stopping. Send the request again.",
        code="upstream_gone",
        status=503,
        retry_after_s=1.0,
    )
