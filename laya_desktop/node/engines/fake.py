"""A working engine without a model, for tests and demonstrations. Runs in the worker like the real one.

It calls its device "fake" and passes the same contract suite. Its path says how it behaves, e.g.
``fake:tokens=20,itl_ms=10,load_ms=200``; see ``FakeSettings``. It claims memory only when told to, never layers.
"""

from __future__ import annotations

import math
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
    NoFreeSlotError,
    Prefilled,
    ProgressSink,
    Refused,
    RequestEvent,
    Started,
    Stats,
    TokenLogprob,
    Vector,
)
from laya_desktop.node.engines.dialect import Dialect
from laya_desktop.node.engines.fake_values import formed_answer
from laya_desktop.node.engines.lane import Lane, Tally, refusal, reply_of, too_many_answers
from laya_desktop.node.engines.side_tasks import detokenized, embedding_refusal, tokenized, unit_vector

PREFILL_CHUNK = 512
_LOAD_STEPS = 10
_TEXT = (
    "A fake engine answers with fixed words so that tests know them : über , naïve , 模型 , 🙂 and back again . "
    "Routes match , queues fill , slots decode , and nothing here thinks ."
)
_WORDS = _TEXT.split()
_THINKING = ("<think>", "</think>")
_WIDTH = 8
"""Values of a vector."""
_WORD = r"\w+|[^\w\s]"


@dataclass(frozen=True)
class FakeSettings:
    """How the fake behaves; each field may stand in the path."""

    tokens: int = 20
    """Tokens after which it stops by itself."""
    think: int = 0
    """Words of thinking, before those."""
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
    """A lane with the pieces it will say."""

    def __init__(self, slot_id: int, max_seq_len: int, tally: Tally, index: int, settings: FakeSettings) -> None:
        request = tally.request
        thinks = settings.think > 0 and request.messages is not None
        dialect = Dialect(thinking=_THINKING if thinks else None)
        reply = reply_of(request, dialect)
        super().__init__(request, slot_id, tally.prompt_tokens, max_seq_len, tally=tally, index=index, reply=reply)
        self.to_prefill = tally.prompt_tokens if index == 0 else 0
        self.waits = index > 0
        """For the first answer, which prefills their prompt."""
        self._pieces = _pieces(request, index, settings, thinks=thinks)
        self._ballast = bytes(settings.slot_mib * 2**20)

    def next_piece(self) -> bytes | None:
        """The next token's text; None: the answer is complete."""
        pieces, at = self._pieces, self.completion_tokens
        if self.request.ignore_eos:
            at %= len(pieces)
        return pieces[at].encode() if at < len(pieces) else None


def _pieces(request: Generate, index: int, settings: FakeSettings, *, thinks: bool) -> list[str]:
    """The answer, token by token: the words in turn, from the one that the seed names."""
    if (formed := formed_answer(request)) is not None:
        return re.findall(r"\s+|\w+|[^\w\s]", formed)
    sampling = request.sampling
    first = (sampling.seed or 0) + index if sampling.temperature > 0 else 0
    count = max(settings.tokens, request.min_tokens)
    words = [_WORDS[(first + i) % len(_WORDS)] for i in range(count)]
    said = [word if i == 0 else f" {word}" for i, word in enumerate(words)]
    if not thinks:
        return said
    thought = [f" {_WORDS[i % len(_WORDS)]}" for i in range(settings.think)]
    return [_THINKING[0], *thought, _THINKING[1], *said]


class FakeEngine:
    """Says fixed words at a fixed rate; the seed chooses the first one."""

    def __init__(self) -> None:
        self._settings = FakeSettings()
        self._max_seq_len = 0
        self._ballast = b""
        self._lanes: list[_FakeLane | None] = []
        self._words: list[str] = []
        """Words that were tokenised; a word's token is its place."""
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
        """Take the first free slots."""
        if (too_many := too_many_answers(request, len(self._lanes))) is not None:
            return [too_many]
        free = [i for i, lane in enumerate(self._lanes) if lane is None][: request.n]
        if len(free) < request.n:
            raise NoFreeSlotError("Too few slots are free.")
        if request.task != "answer":
            return self._other(request, free[0])
        prompt_tokens = _count_tokens(request)
        if (refused := refusal(request, prompt_tokens, self._max_seq_len)) is not None:
            return [refused]
        tally = Tally(request, prompt_tokens, 0)
        try:
            lanes = [_FakeLane(at, self._max_seq_len, tally, i, self._settings) for i, at in enumerate(free)]
        except ValueError as error:
            return [Refused(request.request_id, str(error), code="invalid_format", param="response_format")]
        for lane in lanes:
            self._lanes[lane.slot_id] = lane
        return [lanes[0].started(tuple(free[1:]))]

    def _other(self, request: Generate, slot_id: int) -> list[RequestEvent]:
        """Tokens are words; vectors come from the letters, so that equal texts have equal ones."""
        if request.task == "embed":
            return self._embed(request, slot_id)
        if request.task == "detokenize":
            tokens = request.prompt if isinstance(request.prompt, list) else []
            strange = next((t for t in tokens if not 0 <= t < len(self._words)), None)
            if strange is not None:
                return [
                    Refused(request.request_id, f"The prompt has token {strange}, which is no word.", param="prompt")
                ]
            return detokenized(request, slot_id, len(tokens), "".join(self._words[t] for t in tokens))
        words = [word for text in _texts(request) for word in re.findall(rf"\s*(?:{_WORD})|\s+$", text)]
        self._words += [word for word in dict.fromkeys(words) if word not in self._words]
        return tokenized(request, slot_id, [self._words.index(w) for w in words], lambda t: self._words[t].encode())

    def _embed(self, request: Generate, slot_id: int) -> list[RequestEvent]:
        texts = [one if isinstance(one, str) else " ".join(map(str, one)) for one in request.inputs]
        lengths = [len(re.findall(_WORD, text)) for text in texts]
        if (refused := embedding_refusal(request, lengths, self._max_seq_len, _WIDTH)) is not None:
            return [refused]
        total = sum(lengths)
        self._prefill_tokens += total
        vectors = [
            Vector(request.request_id, i, unit_vector(_sums(text), request.dimensions)) for i, text in enumerate(texts)
        ]
        finished = Finished(request.request_id, "stop", total, 0, prefill_s=0.0)
        return [
            Started(request.request_id, slot_id, total),
            Prefilled(request.request_id, 0.0, total),
            *vectors,
            finished,
        ]

    def cancel(self, request_id: str) -> list[RequestEvent]:
        """Free the request's slots."""
        lanes = [lane for lane in self._lanes if lane is not None and lane.request.request_id == request_id]
        for lane in lanes:
            self._lanes[lane.slot_id] = None
        return lanes[0].end("cancelled") if lanes else []

    def step(self) -> list[RequestEvent]:
        """One word for every decoding slot, at most 512 prompt tokens for the others."""
        self._steps += 1
        if self._steps == self._settings.crash_after:
            raise SystemExit(3)
        prefilling = any(lane and lane.to_prefill for lane in self._lanes)
        pause_ms = self._settings.itl_ms + (self._settings.prefill_ms if prefilling else 0.0)
        if pause_ms:
            time.sleep(pause_ms / 1000)
        budget = PREFILL_CHUNK
        events: list[RequestEvent] = []
        for lane in list(self._lanes):
            if lane is None or lane.waits:
                continue
            if lane.to_prefill:
                chunk = min(budget, lane.to_prefill)
                budget -= chunk
                lane.to_prefill -= chunk
                self._prefill_tokens += chunk
                if lane.to_prefill:
                    continue
                events.append(lane.prefilled())
                self._begin_others(lane)
            events += self._say(lane)
        return events

    def _begin_others(self, first: _FakeLane) -> None:
        for lane in self._lanes:
            if lane is not None and lane.tally is first.tally:
                lane.waits = False

    def _say(self, lane: _FakeLane) -> list[RequestEvent]:
        piece = lane.next_piece()
        if piece is None:
            events = lane.end("stop")
        else:
            self._decode_tokens += 1
            events = lane.take(piece, _logprob(lane.request, piece))
        if lane.over:
            self._lanes[lane.slot_id] = None
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


def _logprob(request: Generate, piece: bytes) -> TokenLogprob | None:
    """Even odds against as many others as are asked for."""
    if request.logprobs is None:
        return None
    others = [(b"#%d" % i, -1.0 - i) for i in range(max(0, request.logprobs - 1))]
    return TokenLogprob(len(piece), piece, math.log(0.5), ((piece, math.log(0.5)), *others)[: request.logprobs])


def _count_tokens(request: Generate) -> int:
    """Prompt length: words and marks of the text, or the number of ids given."""
    if isinstance(request.prompt, list):
        return len(request.prompt)
    return sum(len(re.findall(_WORD, text)) for text in _texts(request))


def _texts(request: Generate) -> list[str]:
    if isinstance(request.prompt, str):
        return [request.prompt]
    return [str(m.get("content")) for m in request.messages or []]


def _sums(text: str) -> list[float]:
    sums = [1.0] * _WIDTH
    for i, byte in enumerate(text.encode()):
        sums[i % _WIDTH] += byte
    return sums
