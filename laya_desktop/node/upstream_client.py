"""The client of one remote server: connections kept alive, time limits, health. The node's loop.

A request's body goes out once as it came in, and the answer's parts come back as they arrive. Redirects are answers
like any other and are never followed; a caller's own key never reaches an upstream, an upstream's key only itself.
A request is sent a second time only where a kept connection turned out to be closed before a byte came back.
"""

from __future__ import annotations

import asyncio
import logging
import re
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from laya_desktop.errors import LayaError
from laya_desktop.node import upstream_errors as errors
from laya_desktop.node.balance import Readiness, TargetLoad
from laya_desktop.node.tasks import spawn
from laya_desktop.node.upstream_health import Circuit
from laya_desktop.node.upstream_http import Connection, WireError
from laya_desktop.node.upstream_relay import Relay
from laya_desktop.node.upstream_wire import (
    Headers,
    Origin,
    incoming,
    is_sendable,
    outgoing,
    relay_head,
    request_head,
)
from laya_desktop.state.snapshot import UpstreamSnapshot

if TYPE_CHECKING:
    from laya_desktop.config.schema import UpstreamConfig

log = logging.getLogger(__name__)

_KEPT_IDLE = 16
_TRIAL_PAUSE_S = 5.0
_PROBE_TIMEOUT_S = 5.0
_CLOSE_S = 1.0
_KEYRING = "keyring:"
_SWEEP_S = 0.25
_TARGETS_KEPT = 256
_LATE_BEGIN = "did not begin its answer in the time that the route gives it"
_LATE_END = "did not finish its answer in the time that the route gives it"
_SENDABLE = re.compile(r"[!-~]+")


@dataclass(frozen=True, slots=True)
class Effects:
    """What the clients need from outside, and limits beside the upstream's ``connect_timeout``.

    Attributes:
        resolve_key: a key by its name in the system's keyring, None where there is none; may block.
        make_tls: makes the context for https; may block.
        silence_s: longest pause within an answer.
        keep_s: how long an unused connection is kept.
    """

    resolve_key: Callable[[str], str | None]
    make_tls: Callable[[], ssl.SSLContext] = ssl.create_default_context
    silence_s: float = 120.0
    keep_s: float = 60.0


class UpstreamResponse:
    """An answer on its way: iterate over it (or over ``body``) for its parts as they arrive.

    The iteration raises ``LayaError`` where the answer breaks off or takes too long. Whoever stops early calls
    ``cancel``.
    """

    def __init__(self, upstream: Upstream, connection: Connection, deadline_s: float) -> None:
        self.status = connection.status
        self.headers: list[tuple[str, str]] = incoming(connection.headers)
        self._upstream = upstream
        self._connection: Connection | None = connection
        self._deadline_s = deadline_s

    @property
    def body(self) -> AsyncIterator[bytes]:
        """The parts of the body."""
        return self

    def __aiter__(self) -> UpstreamResponse:
        return self

    async def __anext__(self) -> bytes:
        if self._connection is None:
            raise StopAsyncIteration
        try:
            chunk = await self._upstream.next_chunk(self._connection, self._deadline_s)
        except BaseException:
            self.cancel()
            raise
        if chunk is None:
            self.cancel()
            raise StopAsyncIteration
        return chunk

    def cancel(self) -> None:
        """Stop here: an unfinished answer's connection is closed, so that the upstream stops. Idempotent."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self._upstream.give_back(connection)


class Upstream:
    """One remote server."""

    def __init__(self, config: UpstreamConfig, effects: Effects) -> None:
        self.config = config
        self._effects = effects
        self._origin = Origin.parse(config.url)
        self._tls: ssl.SSLContext | None = None
        self._key: str | None = None
        health = config.health
        self._circuit = Circuit(health.interval if health else _TRIAL_PAUSE_S, probed=health is not None)
        self._live: set[Connection] = set()
        self._idle: list[Connection] = []
        self._relays: set[Relay] = set()
        self._sweep: asyncio.TimerHandle | None = None
        self._targets: dict[str, str] = {}
        """Request targets by path of the API."""
        self._in_flight = 0
        self._retired = False
        self._watch: asyncio.Task[None] | None = None

    async def request(
        self, method: str, api_path: str, headers: Headers, body: bytes = b"", timeout_s: float = 300.0
    ) -> UpstreamResponse:
        """Send a request and wait for the head of its answer, whatever its status.

        Args:
            method: in capitals.
            api_path: path of the API, with or without ``/v1``, and with the query if there is one.
            headers: the caller's; what must not pass is left out here.
            body: whole.
            timeout_s: for the whole answer, in seconds.

        Raises:
            LayaError: 502 unreachable or broken, 503 known to be down, 504 too slow, 508 too many nodes in a row.
        """
        deadline_s = self._now_s + timeout_s
        head = await self._head(method, self._origin.join(api_path), headers, len(body))
        refused_s = self._circuit.refused_for_s(self._now_s)
        if refused_s is not None:
            raise errors.down(self.config.name, self._circuit.error, refused_s)
        self._in_flight += 1
        try:
            connection = await self._exchange(head, body, method == "HEAD", deadline_s)
        except BaseException as error:
            self._in_flight -= 1
            if isinstance(error, LayaError) and error.code != "upstream_timeout":  # slow is not down
                self._circuit.failure(error.message, self._now_s)
            raise
        self._circuit.success()
        if connection.status == 401:
            self._key = None  # the keyring may hold another one by now
        return UpstreamResponse(self, connection, deadline_s)

    def relay(
        self, method: str, api_path: str, headers: Mapping[str, str], request_id: str, body: bytes, timeout_s: float
    ) -> Relay | None:
        """Send at once on a kept connection; None where that takes waiting or asking, which ``request`` does.

        Args:
            method: in capitals.
            api_path: path of the API, with the query if there is one.
            headers: the caller's as the server's parser read them, names in lower case.
            request_id: what the node calls the request.
            body: whole.
            timeout_s: for the whole answer, in seconds.
        """
        key = self.config.api_key
        if key is not None and key.startswith(_KEYRING):
            key = self._key
            if key is None:
                return None
        target = self._targets.get(api_path) or self._target(api_path)
        if target is None or not self._idle or self._circuit.is_open:
            return None
        head = relay_head(method, target, self._origin.authority, headers, request_id, key, len(body))
        connection = self._take_idle() if head is not None else None
        if head is None or connection is None:
            return None
        connection.send(head, body, bodiless=method == "HEAD")
        now_s = self._now_s
        relay = Relay(self, connection, now_s + timeout_s, now_s)
        self._in_flight += 1
        self._relays.add(relay)
        if self._sweep is None:
            self._sweep = asyncio.get_running_loop().call_later(_SWEEP_S, self._sweep_relays)
        return relay

    def snapshot(self) -> UpstreamSnapshot:
        """Its health now."""
        return UpstreamSnapshot(self.config.name, self._circuit.healthy, self._circuit.error, self._in_flight)

    @property
    def load(self) -> TargetLoad:
        """Requests on their way, and whether it counts as down."""
        return TargetLoad(self._in_flight, Readiness.BROKEN if self._circuit.is_open else Readiness.READY)

    # -- for the pool

    def watch(self) -> None:
        """Begin the health checks, if it has any and they have not begun."""
        if self.config.health is not None and self._watch is None and not self._retired:
            self._watch = spawn(self._check_forever(self.config.health.path), f"health of {self.config.name}")

    def retire(self) -> None:
        """No longer in the pool: running answers finish, everything else is closed."""
        self._retired = True
        if self._watch is not None:
            self._watch.cancel()
        for connection in list(self._idle):
            connection.abort()

    async def close(self) -> None:
        """Close everything, running answers too."""
        self.retire()
        live = list(self._live)
        for connection in live:
            connection.abort()
        waited: list[asyncio.Future[None]] = [c.closed for c in live]
        if self._watch is not None:
            waited.append(self._watch)
        if waited:
            await asyncio.wait(waited, timeout=_CLOSE_S)

    # -- for the relays

    def relay_answered(self, relay: Relay) -> None:
        """The head of an answer is there."""
        self._circuit.success()
        if relay.status == 401:
            self._key = None

    def relay_broken(self, relay: Relay, error: WireError) -> LayaError:
        """An answer broke off, or never came."""
        if error.received:
            self._circuit.failure(f"Upstream '{self.config.name}' {error.reason}.", self._now_s)
        return errors.broken(self.config.name, error.reason)

    def relay_over(self, relay: Relay, connection: Connection) -> None:
        """A relay is done with its connection."""
        self._relays.discard(relay)
        self.give_back(connection)

    def _sweep_relays(self) -> None:
        self._sweep = None
        now_s, silence_s = self._now_s, self._effects.silence_s
        for relay in list(self._relays):
            if relay.heard or relay.held:
                relay.heard, relay.heard_s = False, now_s
            if now_s > relay.deadline_s:
                relay.fail(errors.slow(self.config.name, _LATE_END if relay.answered else _LATE_BEGIN))
            elif relay.answered and now_s - relay.heard_s > silence_s:
                relay.fail(errors.slow(self.config.name, _silent(silence_s)))
        if self._relays and self._sweep is None:
            self._sweep = asyncio.get_running_loop().call_later(_SWEEP_S, self._sweep_relays)

    def _target(self, api_path: str) -> str | None:
        target = self._origin.join(api_path)
        if not is_sendable(target):
            return None
        if len(self._targets) >= _TARGETS_KEPT:
            self._targets.clear()
        self._targets[api_path] = target
        return target

    # -- for the answer

    async def next_chunk(self, connection: Connection, deadline_s: float) -> bytes | None:
        """The next part of an answer; None at its end. Raises LayaError."""
        left_s = deadline_s - self._now_s
        try:
            async with asyncio.timeout(min(self._effects.silence_s, left_s)):
                return await connection.read_chunk()
        except WireError as error:
            self._circuit.failure(f"Upstream '{self.config.name}' {error.reason}.", self._now_s)
            raise errors.broken(self.config.name, error.reason) from None
        except TimeoutError:
            silence_s = self._effects.silence_s
            what = _silent(silence_s) if silence_s < left_s else _LATE_END
            raise errors.slow(self.config.name, what) from None

    def give_back(self, connection: Connection) -> None:
        """End an answer; the connection is kept where it can carry another one."""
        self._in_flight -= 1
        self._keep(connection)

    # -- sending

    @property
    def _now_s(self) -> float:
        return asyncio.get_running_loop().time()

    async def _head(self, method: str, target: str, headers: Headers, length: int) -> bytes:
        sent = outgoing(headers, await self._bearer(), self.config.name)
        return request_head(method, target, self._origin.authority, sent, length)

    async def _bearer(self) -> str | None:
        configured = self.config.api_key
        if configured is None or not configured.startswith(_KEYRING):
            return configured
        if self._key is None:
            name = configured.removeprefix(_KEYRING)
            key = await asyncio.to_thread(self._effects.resolve_key, name)
            if key is None:
                raise errors.key_missing(self.config.name, name)
            if not _SENDABLE.fullmatch(key):
                raise errors.key_unusable(self.config.name, name)
            self._key = key
        return self._key

    async def _exchange(self, head: bytes, body: bytes, bodiless: bool, deadline_s: float) -> Connection:
        """Send and wait for the head; the connection is closed where that fails."""
        kept = self._take_idle()
        if kept is not None:
            try:
                return await self._ask(kept, head, body, bodiless, deadline_s)
            except WireError as error:
                if error.received:
                    raise errors.broken(self.config.name, error.reason) from None
        try:
            return await self._ask(await self._connect(deadline_s), head, body, bodiless, deadline_s)
        except WireError as error:
            raise errors.broken(self.config.name, error.reason) from None

    async def _ask(
        self, connection: Connection, head: bytes, body: bytes, bodiless: bool, deadline_s: float
    ) -> Connection:
        try:
            async with asyncio.timeout_at(deadline_s):
                connection.send(head, body, bodiless=bodiless)
                await connection.read_head()
        except BaseException as error:
            connection.abort()
            if isinstance(error, TimeoutError):
                raise errors.slow(self.config.name, _LATE_BEGIN) from None
            raise
        return connection

    async def _connect(self, deadline_s: float) -> Connection:
        limit_s = min(self.config.connect_timeout, deadline_s - self._now_s)
        if self._origin.tls and self._tls is None:
            self._tls = await asyncio.to_thread(self._effects.make_tls)
        try:
            async with asyncio.timeout(limit_s):
                _, connection = await asyncio.get_running_loop().create_connection(
                    lambda: Connection(self._forget), self._origin.host, self._origin.port, ssl=self._tls
                )
        except TimeoutError:
            raise errors.no_connection_in_time(self.config.name, self.config.url, limit_s) from None
        except (OSError, UnicodeError) as fault:
            raise errors.unreachable(self.config.name, self.config.url, fault) from None
        self._live.add(connection)
        return connection

    # -- kept connections

    def _take_idle(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closing and self._now_s - connection.idle_since_s < self._effects.keep_s:
                return connection
            connection.abort()
        return None

    def _keep(self, connection: Connection) -> None:
        if not connection.release():
            return
        if self._retired or len(self._idle) >= _KEPT_IDLE:
            connection.abort()
            return
        connection.idle_since_s = self._now_s
        self._idle.append(connection)

    def _forget(self, connection: Connection) -> None:
        self._live.discard(connection)
        with suppress(ValueError):
            self._idle.remove(connection)

    # -- health

    async def _check_forever(self, path: str) -> None:
        while True:
            was_open = self._circuit.is_open
            await self._check(path)
            if self._circuit.is_open and not was_open:
                log.warning("Upstream '%s' is down. %s", self.config.name, self._circuit.error)
            elif was_open and not self._circuit.is_open:
                log.info("Upstream '%s' is back.", self.config.name)
            await asyncio.sleep(self._circuit.pause_s)

    async def _check(self, path: str) -> None:
        deadline_s = self._now_s + _PROBE_TIMEOUT_S
        try:
            connection = await self._exchange(await self._head("GET", path, (), 0), b"", False, deadline_s)
        except LayaError as error:
            self._circuit.failure(error.message, self._now_s)
            return
        if 200 <= connection.status < 300:
            self._circuit.success()
        else:
            self._circuit.failure(f"Its {path} answered {connection.status}.", self._now_s)
        await self._drain(connection, deadline_s)

    async def _drain(self, connection: Connection, deadline_s: float) -> None:
        """Read what is left of a check's answer, so that the connection can be kept."""
        with suppress(WireError, TimeoutError):
            async with asyncio.timeout_at(deadline_s):
                while await connection.read_chunk() is not None:
                    pass
        self._keep(connection)


def _silent(silence_s: float) -> str:
    return f"was silent for {silence_s:.3g} s in the middle of its answer"
