"""What goes over the wire to an upstream and back: paths, heads, headers. Pure functions; any thread.

Nothing of this node's callers that identifies them (keys, cookies) passes; hop-by-hop headers end here both ways.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from laya_desktop.errors import LayaError

HOPS_HEADER = "X-Laya-Hops"
"""Counts the Laya nodes that a request went through, so that two nodes that name each other end it."""
MAX_HOPS = 5

Headers = Mapping[str, str] | Iterable[tuple[str, str]]

_HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_CREDENTIALS = frozenset({"authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie"})
_OURS = frozenset({"host", "content-length", "expect", HOPS_HEADER.lower()})
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_BAD_VALUE = re.compile(r"[\x00\r\n]")
_BAD_TARGET = re.compile(r"[^!-~]")
_API_NAMES = frozenset(
    {"audio", "batches", "chat", "completions", "embeddings", "files", "images", "models", "moderations", "responses"}
)
_HOPS = HOPS_HEADER.lower()
_NOT_RELAYED = _HOP_BY_HOP | _CREDENTIALS | _OURS | {"origin", "referer", "x-request-id"}
_PLAIN_CONNECTION = ("close", "keep-alive")
_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an upstream listens, from its url.

    Attributes:
        authority: the Host header's value.
        base: path of the url without a slash at its end, ``""`` or ``/v1``.
    """

    tls: bool
    host: str
    port: int
    authority: str
    base: str

    @classmethod
    def parse(cls, url: str) -> Origin:
        """From a url that the schema has checked."""
        parts = urlsplit(url)
        tls = parts.scheme == "https"
        return cls(
            tls=tls,
            host=parts.hostname or "",
            port=parts.port or (443 if tls else 80),
            authority=parts.netloc,
            base=parts.path.rstrip("/"),
        )

    def join(self, api_path: str) -> str:
        """The request target for a path of the API, which may begin with ``/v1`` and may have a query.

        The url's own path stands for ``/v1``: ``https://h/api/v4`` and ``/v1/models`` give ``/api/v4/models``. Where
        the url has none, the standard names go below ``/v1`` and any other path stays as it is.
        """
        path, mark, query = api_path.partition("?")
        rest = "" if path in ("", "/") else path if path.startswith("/") else f"/{path}"
        bare = rest.removeprefix("/v1") if rest == "/v1" or rest.startswith("/v1/") else rest
        if self.base:
            target = self.base + bare
        elif rest == bare and bare.split("/")[1:2] and bare.split("/")[1] in _API_NAMES:
            target = f"/v1{bare}"
        else:
            target = rest
        return (target or "/") + mark + query


def request_head(method: str, target: str, authority: str, headers: list[tuple[str, str]], length: int) -> bytes:
    """The bytes before the body.

    Raises:
        LayaError: 400 for text that would break out of its line.
    """
    if not _TOKEN.fullmatch(method) or _BAD_TARGET.search(target):
        raise _unsendable("method or path")
    lines = [f"{method} {target} HTTP/1.1", f"Host: {authority}"]
    for name, value in headers:
        if not _TOKEN.fullmatch(name) or _BAD_VALUE.search(value):
            raise _unsendable(f"header {name!r}")
        lines.append(f"{name}: {value}")
    if length or method in _WITH_BODY:
        lines.append(f"Content-Length: {length}")
    text = "\r\n".join(lines) + "\r\n\r\n"
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode()


def outgoing(headers: Headers, key: str | None, upstream: str) -> list[tuple[str, str]]:
    """Headers for the upstream: the caller's without keys and hop-by-hop ones, our key for it, one hop more.

    Raises:
        LayaError: 508 where the request went through too many nodes.
    """
    pairs = list(headers.items() if isinstance(headers, Mapping) else headers)
    hops = max((_count(v) for n, v in pairs if n.lower() == HOPS_HEADER.lower()), default=0) + 1
    if hops > MAX_HOPS:
        raise LayaError(
            f"This request went through {MAX_HOPS} Laya nodes, so upstream '{upstream}' does not get it.",
            hint="Two nodes probably name each other as upstream: point one of the routes at a model.",
            code="too_many_hops",
            status=508,
        )
    dropped = _HOP_BY_HOP | _CREDENTIALS | _OURS | _named_by_connection(pairs)
    sent = [(n, v) for n, v in pairs if n.lower() not in dropped]
    if key is not None:
        sent.append(("Authorization", f"Bearer {key}"))
    sent.append((HOPS_HEADER, str(hops)))
    return sent


def relay_head(
    method: str, target: str, authority: str, headers: Mapping[str, str], request_id: str, key: str | None, length: int
) -> bytes | None:
    """What ``outgoing`` and ``request_head`` make, for a head that the server's parser has checked; quickly.

    Args:
        method: in capitals.
        target: checked with ``is_sendable``.
        authority: the Host header's value.
        headers: names in lower case.
        request_id: what the node calls the request.
        key: for the upstream.
        length: of the body, in bytes.

    Returns:
        None where the head has to be looked at more closely.
    """
    if headers.get("connection", "close").lower() not in _PLAIN_CONNECTION:
        return None
    hops = headers.get(_HOPS)
    count = 1 if hops is None else _count(hops) + 1
    if count > MAX_HOPS:
        return None
    lines = [f"{method} {target} HTTP/1.1\r\nHost: {authority}\r\n"]
    lines += [f"{name}: {value}\r\n" for name, value in headers.items() if name not in _NOT_RELAYED]
    if key is not None:
        lines.append(f"Authorization: Bearer {key}\r\n")
    lines.append(f"{HOPS_HEADER}: {count}\r\nX-Request-Id: {request_id}\r\n")
    lines.append(f"Content-Length: {length}\r\n\r\n" if length or method in _WITH_BODY else "\r\n")
    try:
        return "".join(lines).encode("latin-1")
    except UnicodeEncodeError:
        return None


def is_sendable(target: str) -> bool:
    """True for a request target that cannot break out of its line."""
    return _BAD_TARGET.search(target) is None


def incoming(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Headers of the upstream's answer without the hop-by-hop ones, in order."""
    kept, named = [], ""
    for pair in pairs:
        name = pair[0].lower()
        if name not in _HOP_BY_HOP:
            kept.append(pair)
        elif name == "connection" and pair[1].lower() not in _PLAIN_CONNECTION:
            named += f",{pair[1]}"
    if not named:
        return kept
    dropped = {word.strip().lower() for word in named.split(",")}
    return [(n, v) for n, v in kept if n.lower() not in dropped]


def _named_by_connection(pairs: list[tuple[str, str]]) -> frozenset[str]:
    return frozenset(
        word.strip().lower() for name, value in pairs if name.lower() == "connection" for word in value.split(",")
    )


def _count(value: str) -> int:
    """Hops so far; what is no number was not written by a node and counts as the most."""
    value = value.strip()
    return int(value) if value.isascii() and value.isdigit() and len(value) < 4 else MAX_HOPS


def _unsendable(what: str) -> LayaError:
    return LayaError(
        f"The {what} has characters that HTTP does not allow.",
        hint="Remove line breaks and control characters.",
        code="invalid_request",
        status=400,
    )
