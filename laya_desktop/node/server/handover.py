"""One request on its way through its targets: the first that can take it answers. Runs on the node's loop.

A target is left for the next one only before the first byte of the answer, and only where another target may do
better: no connection, 429, 502, 503 or 504, a full queue, a model that cannot be loaded or whose worker died. All
targets share the route's time. It chooses no target: the order comes in.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from laya_desktop.errors import LayaError
from laya_desktop.node.server.answering import Answer
from laya_desktop.node.server.proxy import Forward
from laya_desktop.node.tasks import spawn
from laya_desktop.state.enums import Phase

if TYPE_CHECKING:
    from collections.abc import Iterable

    from laya_desktop.node.records import RequestRecord
    from laya_desktop.node.server.exchange import Exchange
    from laya_desktop.node.server.gateway import Gateway
    from laya_desktop.node.server.operations import Prepared

log = logging.getLogger(__name__)

PASSED_ON = frozenset({429, 502, 503, 504})
"""Statuses that say "not now" or "not here": the next target may do better."""
_FINAL = frozenset({"cancelled", "draining", "shutting_down", "timeout"})
"""Codes of errors that no other target can help."""
_LEAST_S = 0.05
"""With less time than this left there is no use in another target."""


def may_pass_on(error: LayaError) -> bool:
    """True where another target may do better."""
    return error.status in PASSED_ON and error.code not in _FINAL


@dataclass(frozen=True, slots=True)
class Job:
    """What a request asks for, whoever answers it.

    Attributes:
        api_path: what an upstream is asked for, with the query.
        timeout_s: for the whole answer.
        prepare: reads the body for a model of our own. Raises LayaError for one that a model cannot answer.
    """

    api_path: str
    timeout_s: float
    prepare: Callable[[], Prepared]


class Handover:
    """Hands one request to its targets in turn until one has it."""

    def __init__(
        self, gateway: Gateway, exchange: Exchange, record: RequestRecord, job: Job, order: Iterable[str]
    ) -> None:
        self._gateway = gateway
        self._exchange = exchange
        self._record = record
        self._job = job
        self._left = deque(order)
        self._deadline_s = time.monotonic() + job.timeout_s
        self._first = True

    def begin(self) -> None:
        """Hand the request to the first target that takes it.

        Raises:
            LayaError: none did; the error is the last one's.
        """
        while True:
            name = self._left.popleft()
            self._record.target = self._exchange.served_by = name
            try:
                self._hand(name)
            except LayaError as error:
                if not self._can_pass_on(error):
                    raise
                self._note(error)
            else:
                return

    def retry(self, error: LayaError) -> bool:
        """A target gave the request back before the first byte. True when it is settled: another one has it."""
        if not self._can_pass_on(error):
            return False
        self._note(error)
        self._record.start_over()
        self._exchange.queue_ms = None
        try:
            self.begin()
        except LayaError as last:
            self._fail(last)
        except Exception as fault:
            log.exception("Passing on failed: request %s", self._record.request_id)
            self._fail(LayaError(f"The node failed on this request ({type(fault).__name__}).", hint="See its log."))
        return True

    def _fail(self, error: LayaError) -> None:
        self._record.finish(Phase.FAILED, status=error.status, error=str(error))
        self._exchange.fail(error)

    def _can_pass_on(self, error: LayaError) -> bool:
        return bool(self._left) and may_pass_on(error) and self._remaining_s > _LEAST_S

    @property
    def _remaining_s(self) -> float:
        return self._deadline_s - time.monotonic()

    def _hand(self, name: str) -> None:
        if self._gateway.config.upstream(name) is not None:
            self._forward(name)
        else:
            self._generate(name)
        self._first = False

    @property
    def _timeout_s(self) -> float:
        return self._job.timeout_s if self._first else self._remaining_s

    def _generate(self, name: str) -> None:
        exchange, record = self._exchange, self._record
        prepared = self._job.prepare()
        record.stream = prepared.stream
        generation = self._gateway.generate(record, name, prepared.request, self._timeout_s)
        self._routed()
        if not self._left:
            exchange.release_body()
        answer = Answer(exchange, generation, record, prepared.shape(name), self.retry, prepared.request.n)
        spawn(answer.run(stream=prepared.stream), f"answer {record.request_id}")

    def _forward(self, name: str) -> None:
        upstream = self._gateway.upstreams.get(name)
        self._record.phase = Phase.PROXY
        forward = Forward(self._exchange, self._record, upstream, self._job.api_path, self.retry)
        forward.start(self._timeout_s, self._routed)

    def _routed(self) -> None:
        """Routing latency ends when the first target has the request."""
        if self._exchange.routing_us is None:
            self._exchange.routed(self._gateway.metrics, self._record.route)
            self._record.routing_us = self._exchange.routing_us

    def _note(self, error: LayaError) -> None:
        log.info("Request %s goes on to '%s': %s", self._record.request_id, self._left[0], error)
