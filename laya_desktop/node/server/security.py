"""Who may ask what: Host, Origin and keys. Pure decisions on one request's headers; no I/O, no state that changes.

The order is fixed: Host first (DNS rebinding), then where a browser sends the request from (cross-site requests), then
the key. A page of another site can read an answer only where its exact origin is in ``server.cors_origins``, never
with the browser's own credentials, and never one of ``/admin`` or ``/metrics``.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Protocol

from laya_desktop.config.keys import digest, usable
from laya_desktop.errors import LayaError

if TYPE_CHECKING:
    from laya_desktop.config.schema import ServerConfig

_HOST = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]+(?:%25[A-Za-z0-9]+)?\]|[A-Za-z0-9._-]+)(?::(?P<port>\d{1,5}))?")
_LOOPBACK_NAMES = frozenset({"localhost", "localhost.localdomain", "ip6-localhost"})
_WILDCARDS = frozenset({"", "0.0.0.0", "::", "*"})  # noqa: S104 - recognised, not bound
_TOKENS = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~, -]{1,1024}")
_EXPOSED = "X-Request-Id, X-Laya-Route, X-Laya-Routing-Us, X-Laya-Queue-Ms, X-Laya-Cache, Retry-After, retry-after-ms"
PREFLIGHT_KEPT_S = 600
_KNOWN_HOSTS_KEPT = 256


def is_loopback(address: str) -> bool:
    """True for an address that only this machine reaches, and for ``localhost``."""
    name = address.strip("[]").partition("%")[0].lower()
    if name in _LOOPBACK_NAMES:
        return True
    try:
        found = ipaddress.ip_address(name)
    except ValueError:
        return False
    mapped = getattr(found, "ipv4_mapped", None)
    return bool((mapped or found).is_loopback)


def require_key_beyond_loopback(server: ServerConfig, host: str, *, loopback: bool) -> None:
    """Refuse to open the network without a key.

    Raises:
        LayaError: with code ``key_required``.
    """
    if not loopback and not usable(server.api_keys):
        raise LayaError(
            f"Listening on {host or 'every address'} opens this node to the network, which needs an API key.",
            hint="Add a key to server.api_keys, or set server.host to 127.0.0.1.",
            code="key_required",
            status=409,
            param="server.api_keys",
        )


class HasLocalAddress(Protocol):
    """A connection, as far as the Host check goes."""

    @property
    def local_address(self) -> str:
        """This end's address."""
        ...


class Policy:
    """The rules of one listener under one configuration."""

    def __init__(self, server: ServerConfig, bound_host: str, *, loopback: bool) -> None:
        self._keys = tuple(digest(k) for k in usable(server.api_keys))
        self._admin_key = digest(server.admin_key) if server.admin_key else None
        self._loopback = loopback
        self._any_address = bound_host in _WILDCARDS
        self._names = {_bare(bound_host), _bare(server.host)} - _WILDCARDS
        self._extra = tuple(h.lower() for h in server.allowed_hosts)
        self._origins = frozenset(server.cors_origins)
        self.has_origins = bool(self._origins)
        self._known_good: set[str] = set()

    # -- Host

    def check_host(self, headers: Mapping[str, str], conn: HasLocalAddress, *, http10: bool) -> None:
        """The request is meant for this node.

        Args:
            headers: names in lower case.
            conn: its own address is allowed as a name where the node listens on every address.
            http10: the only version that may come without Host (probes of load balancers).

        Raises:
            LayaError: 400 where Host is missing or malformed, 403 where it names another host.
        """
        host = headers.get("host")
        if host in self._known_good:
            return
        if not host:
            if http10 and host is None:
                return
            raise LayaError(
                "The request has no Host header.", hint="Send one, as HTTP/1.1 asks.", code="bad_host", status=400
            )
        match = _HOST.fullmatch(host)
        if match is None or int(match["port"] or 0) > 65535:
            raise LayaError(
                "The Host header is malformed.", hint="Write name or name:port.", code="bad_host", status=400
            )
        if not self._is_ours(match["name"].lower().rstrip("."), host.lower(), conn):
            raise LayaError(
                f"This node does not answer for the host '{match['name']}'.",
                hint="Use 127.0.0.1 or localhost, or add the name to server.allowed_hosts.",
                code="host_not_allowed",
                status=403,
            )
        if not self._any_address and len(self._known_good) < _KNOWN_HOSTS_KEPT:
            self._known_good.add(host)

    def knows(self, host: str) -> bool:
        """True for a Host header that was found good before, on whichever connection."""
        return host in self._known_good

    def _is_ours(self, name: str, full: str, conn: HasLocalAddress) -> bool:
        if is_loopback(name) or _bare(name) in self._names:
            return True
        if self._any_address and _bare(name) == _bare(conn.local_address):
            return True
        return self._is_extra(name, full)

    def _is_extra(self, name: str, full: str) -> bool:
        return any(fnmatchcase(name, extra) or fnmatchcase(full, extra) for extra in self._extra)

    # -- Origin

    def check_origin(self, headers: Mapping[str, str], *, own: bool = False) -> None:
        """No page of another site sends requests here through a browser, but for those that are listed.

        Args:
            headers: names in lower case.
            own: the request is for ``/admin`` or ``/metrics``, which are for pages of this very address only.

        Raises:
            LayaError: 403.
        """
        origin = headers.get("origin")
        if origin is None:
            site = headers.get("sec-fetch-site")
            if site is None or site in ("same-origin", "none"):
                return
        else:
            authority = origin.partition("://")[2].lower()
            match = _HOST.fullmatch(authority)
            if match is not None and authority == headers.get("host", "").lower():
                return
            if match is not None and not own and self._is_trusted_page(origin.lower(), match["name"], authority):
                return
        raise LayaError(
            f"A web page of another site ({header_safe(origin) or 'unknown'}) sent this request, which is refused.",
            hint="Call the node from a program, or add the page's origin to server.cors_origins.",
            code="origin_not_allowed",
            status=403,
        )

    def cors_lines(self, headers: Mapping[str, str]) -> str:
        """Header lines of an answer that tell a browser whether the page may read it."""
        origin = headers.get("origin", "").lower()
        if origin not in self._origins:
            return "Vary: Origin\r\n"
        return f"Vary: Origin\r\nAccess-Control-Allow-Origin: {origin}\r\nAccess-Control-Expose-Headers: {_EXPOSED}\r\n"

    def preflight(self, method: str, headers: Mapping[str, str]) -> list[tuple[str, str]] | None:
        """Headers of the answer to a browser that asks before it sends; None where this is no such question.

        A page that is not listed gets None as well, and with it the refusal that ``check_origin`` gives everybody.
        """
        wanted = headers.get("access-control-request-method")
        if method != "OPTIONS" or wanted is None or headers.get("origin", "").lower() not in self._origins:
            return None
        answer = [
            ("Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE"),
            ("Access-Control-Max-Age", str(PREFLIGHT_KEPT_S)),
        ]
        names = headers.get("access-control-request-headers", "")
        if _TOKENS.fullmatch(names):
            answer.append(("Access-Control-Allow-Headers", names))
        return answer

    def _is_trusted_page(self, origin: str, name: str, authority: str) -> bool:
        """Listed, or on an allowed host; a lone ``*`` opens the node to any Host, but not to any page."""
        if origin in self._origins:
            return True
        return any(fnmatchcase(name, e) or fnmatchcase(authority, e) for e in self._extra if e.strip("*"))

    # -- keys

    def check_key(self, headers: Mapping[str, str]) -> None:
        """The caller holds an API key, where any is set.

        Raises:
            LayaError: 401; 403 where the node is open to the network and has lost its last key.
        """
        if self._keys:
            _require(headers, self._keys, "an API key")
        elif not self._loopback:
            raise LayaError(
                "This node listens on the network and has no API key, so it answers nobody.",
                hint="Add a key to server.api_keys.",
                code="key_required",
                status=403,
            )

    def check_metrics(self, headers: Mapping[str, str]) -> None:
        """``/metrics`` opens with an API key or the admin key. Raises LayaError."""
        if self._admin_key is not None and _matches(headers, (self._admin_key,)):
            return
        self.check_key(headers)

    def check_admin(self, headers: Mapping[str, str], peer_address: str) -> None:
        """``/admin`` opens with its own key, or to programs on this machine where it has none.

        Raises:
            LayaError: 401 or 403.
        """
        if self._admin_key is not None:
            _require(headers, (self._admin_key,), "the admin key")
            return
        forwarded = "x-forwarded-for" in headers or "forwarded" in headers
        if forwarded or not is_loopback(peer_address):
            raise LayaError(
                "/admin answers only programs on this machine while it has no key of its own.",
                hint="Set server.admin_key and send it, to administer the node from elsewhere.",
                code="admin_key_required",
                status=403,
            )


def _bare(host: str) -> str:
    """An address without brackets, zone and IPv4 mapping; a name in lower case."""
    name = host.strip("[]").partition("%")[0].lower()
    return name.removeprefix("::ffff:") if "." in name else name


def header_safe(value: str | None) -> str:
    """A header's value as a message may repeat it: printable and short."""
    return "".join(c for c in value or "" if c.isprintable())[:100]


def _presented(headers: Mapping[str, str]) -> list[str]:
    keys = [headers["x-api-key"]] if headers.get("x-api-key") else []
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and token.strip():
        keys.append(token.strip())
    return keys


def _matches(headers: Mapping[str, str], digests: tuple[bytes, ...]) -> bool:
    found = False
    for key in _presented(headers):
        given = hashlib.sha256(key.encode("latin-1", "replace")).digest()
        for known in digests:
            found |= hmac.compare_digest(given, known)
    return found


def _require(headers: Mapping[str, str], digests: tuple[bytes, ...], what: str) -> None:
    if _matches(headers, digests):
        return
    if _presented(headers):
        raise LayaError(
            f"The key is not {what} of this node.", hint="Check the key.", code="invalid_api_key", status=401
        )
    raise LayaError(
        f"This needs {what}.",
        hint="Send it as 'Authorization: Bearer KEY' or 'x-api-key: KEY'.",
        code="missing_api_key",
        status=401,
    )
