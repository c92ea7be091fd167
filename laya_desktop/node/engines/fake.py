"""A working engine without a model, for tests and demonstrations. Runs in the worker like the real one.

It calls its device "fake" and passes the same contract suite. Its path says how it behaves, e.g.
``fake:tokens=20,itl_ms=10,load_ms=200``; see ``FakeSettings``. It claims memory only when told to, never layers.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, fields

from laya_desktop.errors import near
from laya_desktop.node.engines import worker_os
from laya_desktop.node.engines.base import (
    EngineLoadError,
    EngineParams,
    Finished,
    Generate,
    Loaded,
    ProgressSink,
    RequestEvent,
    Stats,
)
from laya_desktop.node.engines.lane import Lane, refusal

PREFILL_CHUNK = 512
_LOAD_STEPS = 10
_FOR_GOOD_S = 1e6
_TEXT = (
    "A fake engine answers with fixed words so that tests know them : über , naïve , 模型 , 🙂 and back again . "
    "Routes match , queues fill , slots decode , and nothing here thinks ."
)
_WORDS = _TEXT.split()


@dataclass(frozen=True)
class FakeSettings:
    """How the fake behaves; each field may stand in the path."""

    tokens: int = 20
    """Tokens after which it stops by itself."""
    itl_ms: float = 0.0
    """Milliseconds a step takes, whatever the number of busy slots."""
    prefill_ms: float = 0.0
    """Extra milliseconds of a step that prefills."""
    load_ms: float = 0.0
    memory_mib: int = 0
    """Memory it says it holds, in MiB, so that two of them may not fit beside each other; 0: it does not say."""
    fail_load: int = 0
    """1: the load fails."""
    crash_load: int = 0
    """1: the process exits during the load."""
    crash_after: int = 0
    """The process exits after that many steps; 0: never."""
    load_mib: int = 0
    """MiB that are really allocated by the load."""
    slot_mib: int = 0
    """MiB that are really allocated for each request it answers, and freed at its end."""
    hang_after: int = 0
    """It sleeps for good after that many steps; 0: never."""


def parse_path(path: str) -> FakeSettings:
    """Settings from ``fake:key=value,…``; a bare ``fake`` gives the defaults.

    Raises:
        EngineLoadError: an unknown key or a value that is no number.
    """
    known: dict[str, type[int] | type[float]] = {f.name: type(f.default) for f in fields(FakeSettings)}  # type: ignore[misc]
    values: dict[str, float] = {}
    for part in filter(None, path.partition(":")[2].split(",")):
        key, _, text = part.partition("=")
        if key not in known:
            raise EngineLoadError(f"The fake engine has no setting '{key}'.{near(key, known)}", code="bad_model_file")
        try:
            values[key] = known[key](text)
        except ValueError:
            raise EngineLoadError(
                f"The fake engine's setting {key}={text!r} is no number.", code="bad_model_file"
            ) from None
    return FakeSettings(**values)  # type: ignore[arg-type]


class _FakeLane(Lane):
    """A lane with the words it will say."""

    def __init__(self, request: Generate, slot_id: int, prompt_tokens: int, max_seq_len: int) -> None:
        super().__init__(request, slot_id, prompt_tokens, max_seq_len)
        self.to_prefill = prompt_tokens
        sampling = request.sampling
        self.ballast = b""
        self.first_word = (sampling.seed or 0) if sampling.temperature > 0 else 0

    def next_piece(self) -> bytes:
        """The next word, with the space before it."""
        word = _WORDS[(self.first_word + self.completion_tokens) % len(_WORDS)]
        return (word if self.completion_tokens == 0 else f" {word}").encode()


class FakeEngine:
    """Says fixed words at a fixed rate; the seed chooses the first one."""

    def __init__(self) -> None:
        self._settings = FakeSettings()
        self._max_seq_len = 0
        self._ballast = b""
        self._lanes: list[_FakeLane | None] = []
        self._prefill_tokens = 0
        self._decode_tokens = 0
        self._steps = 0

    def load(self, params: EngineParams, progress: ProgressSink) -> Loaded:
        """Pretend to load for ``load_ms``."""
        began_s = time.monotonic()
        worker_os.limit_memory(params.memory_limit_bytes)
        self._settings = parse_path(params.path)
        for i in range(_LOAD_STEPS):
            progress(i / _LOAD_STEPS)
            time.sleep(self._settings.load_ms / 1000 / _LOAD_STEPS)
        if self._settings.crash_load:
            raise SystemExit(3)
        if self._settings.fail_load:
            raise EngineLoadError("The fake engine was told to fail.", "Remove fail_load from its path.")
        self._ballast = bytes(self._settings.load_mib * 2**20)
        progress(1.0)
        self._max_seq_len = params.max_seq_len
        self._lanes = [None] * params.slots
        return Loaded(
            device="fake",
            slots=params.slots,
            max_seq_len=params.max_seq_len,
            device_note="The fake engine computes nothing; its answers are fixed words.",
            load_s=time.monotonic() - began_s,
            weights_bytes=self._settings.memory_mib * 2**20 or None,
        )

    @property
    def free_slots(self) -> int:
        """Slots that a ``submit`` may take now."""
        return self._lanes.count(None)

    @property
    def busy(self) -> bool:
        """True while any slot has work."""
        return any(self._lanes)

    def submit(self, request: Generate) -> list[RequestEvent]:
        """Take the first free slot."""
        slot_id = next((i for i, lane in enumerate(self._lanes) if lane is None), None)
        if slot_id is None:
            raise RuntimeError("No slot is free.")
        prompt_tokens = _count_tokens(request)
        if (refused := refusal(request, prompt_tokens, self._max_seq_len)) is not None:
            return [refused]
        lane = _FakeLane(request, slot_id, prompt_tokens, self._max_seq_len)
        lane.ballast = bytes(self._settings.slot_mib * 2**20)
        self._lanes[slot_id] = lane
        return [lane.started()]

    def cancel(self, request_id: str) -> list[RequestEvent]:
        """Free the request's slot."""
        for slot_id, lane in enumerate(self._lanes):
            if lane is not None and lane.request.request_id == request_id:
                self._lanes[slot_id] = None
                return lane.end("cancelled")
        return []

    def step(self) -> list[RequestEvent]:
        """One word for every decoding slot, at most 512 prompt tokens for the others."""
        self._steps += 1
        if self._steps == self._settings.crash_after:
            raise SystemExit(3)
        if self._steps == self._settings.hang_after:
            time.sleep(_FOR_GOOD_S)
        prefilling = any(lane and lane.to_prefill for lane in self._lanes)
        pause_ms = self._settings.itl_ms + (self._settings.prefill_ms if prefilling else 0.0)
        if pause_ms:
            time.sleep(pause_ms / 1000)
        budget = PREFILL_CHUNK
        events: list[RequestEvent] = []
        for slot_id, lane in enumerate(self._lanes):
            if lane is None:
                continue
            if lane.to_prefill:
                chunk = min(budget, lane.to_prefill)
                budget -= chunk
                lane.to_prefill -= chunk
                self._prefill_tokens += chunk
                if lane.to_prefill:
                    continue
                events.append(lane.prefilled())
            if lane.completion_tokens >= self._settings.tokens:
                new = lane.end("stop")
            else:
                self._decode_tokens += 1
                new = lane.take(lane.next_piece())
            if new and isinstance(new[-1], Finished):
                self._lanes[slot_id] = None
            events += new
        return events

    def stats(self) -> Stats:
        """Totals since the load."""
        held = tuple(
            lane.prompt_tokens - lane.to_prefill + lane.completion_tokens if lane else 0 for lane in self._lanes
        )
        return Stats(self._prefill_tokens, self._decode_tokens, held)

    def close(self) -> None:
        """Forget everything."""
        self._lanes = []


def _count_tokens(request: Generate) -> int:
    """Prompt length: words and marks of the text, or the number of ids given."""
    if isinstance(request.prompt, list):
        return len(request.prompt)
    texts = [request.prompt] if request.prompt is not None else [str(m.get("content")) for m in request.messages or []]
    return sum(len(re.findall(r"\w+|[^\w\s]", text)) for text in texts)
