"""May a model be loaded now? Refusals with numbers and the way out, and the ceiling that its workers get. Node thread.

In mode ``shed`` a load is refused while the machine is at its limit and where it will not fit; what nobody can
estimate is never refused. In every mode a load that ran out of memory is not tried again as it was. A person may
override all of it, once.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Hashable
from typing import TYPE_CHECKING

import msgspec

from laya_desktop.errors import LayaError
from laya_desktop.node.dry_runs import load_key
from laya_desktop.node.survival import HopelessLoads
from laya_desktop.state.enums import Verdict

if TYPE_CHECKING:
    from laya_desktop.config.schema import ModelConfig
    from laya_desktop.node.engines.base import EngineParams
    from laya_desktop.node.runtime import ModelRuntime
    from laya_desktop.state.snapshot import MemoryEstimate

log = logging.getLogger(__name__)

OUT_OF_MEMORY = ("out_of_memory", "too_large")
"""Codes of a load that failed for want of memory."""
RETRY_S = 30.0
OVERRIDE = 'Or use "Load anyway" on the Models page.'

Estimate = Callable[["ModelConfig", str], Awaitable["MemoryEstimate"]]
Identify = Callable[[str], Awaitable[Hashable]]


class LoadGate:
    """Satisfies ``pool.LoadGate``."""

    def __init__(
        self,
        sheds: Callable[[], bool],
        refusal: Callable[[], LayaError | None],
        estimate: Estimate,
        ceiling: Callable[[ModelConfig, bool], Awaitable[int | None]],
        identify: Identify,
    ) -> None:
        """Remember whom to ask.

        Args:
            sheds: whether the guard's mode is ``shed``.
            refusal: the guard's 503 for loads, while there is one.
            estimate: what a model would take on a device.
            ceiling: RAM that a worker of the model may hold (True: a person insists).
            identify: the identity of a model file.
        """
        self._sheds = sheds
        self._refusal = refusal
        self._estimate = estimate
        self._ceiling = ceiling
        self._identify = identify
        self._hopeless = HopelessLoads()
        self._under_way: dict[str, Hashable] = {}

    async def admit(self, runtime: ModelRuntime, params: EngineParams, override: bool) -> EngineParams:
        """The parameters with the worker's ceiling.

        Raises:
            LayaError: ``overloaded``, ``will_not_fit`` or ``out_of_memory`` (503), with the way out.
        """
        name = runtime.name
        self._under_way.pop(name, None)
        limited = msgspec.structs.replace(params, memory_limit_bytes=await self._ceiling(runtime.config, override))
        key = load_key(limited, await self._identify(params.path))
        if override:
            log.warning("'%s' is loaded although the guard advises against it, because a person insists", name)
        else:
            self._refuse_hopeless(name, key)
            if self._sheds():
                if (refusal := self._refusal()) is not None:
                    raise refusal
                await self._refuse_unfit(runtime, params.device)
        self._under_way[name] = key
        return limited

    def loaded(self, name: str) -> None:
        """The load worked."""
        if (key := self._under_way.pop(name, None)) is not None:
            self._hopeless.forget(key)

    def failed(self, name: str, error: LayaError) -> None:
        """The load failed, or a worker died later, which says nothing about the next load."""
        key = self._under_way.pop(name, None)
        if key is not None and error.code in OUT_OF_MEMORY:
            self._hopeless.add(key, error.message)

    def _refuse_hopeless(self, name: str, key: Hashable) -> None:
        if (reason := self._hopeless.reason(key)) is not None:
            raise LayaError(
                f"Loading '{name}' ran out of memory before and is not tried again unchanged. {reason}",
                hint=f"Lower max_seq_len or batch_size, raise mem_fraction, or choose a smaller model. {OVERRIDE}",
                code="out_of_memory",
                status=503,
                retry_after_s=RETRY_S,
            )

    async def _refuse_unfit(self, runtime: ModelRuntime, device: str) -> None:
        runtime.load_note = "the memory estimate"
        try:
            estimate = await self._estimate(runtime.config, device)
        except LayaError as error:
            log.info("Nobody knows what '%s' needs: %s", runtime.name, error)
            return
        finally:
            runtime.load_note = None
        if estimate.verdict is Verdict.WILL_NOT_FIT:
            raise LayaError(
                f"'{runtime.name}' will not fit and is not loaded. {estimate.reason}",
                hint=OVERRIDE,
                code="will_not_fit",
                status=503,
                retry_after_s=RETRY_S,
            )
