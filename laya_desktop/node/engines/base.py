"""The contract every engine passes, and the messages that cross the worker's socket. Pure values and protocols.

An engine lives in a worker process and is driven by one loop: ``submit`` and ``cancel`` change what the slots hold,
``step`` advances every busy slot once and returns what happened. The parent speaks to it in the messages below,
msgpack frames with a 4-byte big-endian length in front.
"""

from __future__ import annotations

from typing import Literal, Protocol

import msgspec


class Message(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """Anything that crosses the socket; the tag is the class name."""


class EngineParams(Message, frozen=True):
    """How to load a model. Resolved values only: ``auto`` is decided by the worker where only it can know."""

    name: str
    path: str
    engine: Literal["llama_cpp", "transformers", "fake"] = "llama_cpp"
    device: str = "auto"
    """``auto``, ``cpu``, ``gpu`` or ``gpu:N``."""
    gpu_layers: int | None = None
    """None: all layers on a GPU device, none on the CPU."""
    slots: int = 1
    max_seq_len: int = 512
    """Tokens of context per slot."""
    threads: int = 1
    warmup: bool = True


class Sampling(msgspec.Struct, frozen=True, omit_defaults=True):
    """Per-request sampling; the defaults are llama.cpp's."""

    temperature: float = 0.8
    top_k: int = 40
    top_p: float = 0.95
    min_p: float = 0.05
    repeat_penalty: float = 1.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    seed: int | None = None
    logit_bias: dict[int, float] = {}


class Generate(Message, frozen=True):
    """One generation. Exactly one of ``messages`` and ``prompt`` is given."""

    request_id: str
    messages: list[dict[str, object]] | None = None
    """Chat messages in OpenAI's form; the worker renders them with the model's own chat template."""
    prompt: str | list[int] | None = None
    max_tokens: int | None = None
    """None: as many as the context holds."""
    stop: tuple[str, ...] = ()
    sampling: Sampling = Sampling()
    tools: list[dict[str, object]] | None = None


class Cancel(Message, frozen=True):
    """Stop a generation; its slot is free after the current step."""

    request_id: str


class Shutdown(Message, frozen=True):
    """End the worker."""


class Ping(Message, frozen=True):
    """Answered with ``Pong`` between two steps."""

    sent_s: float


class Probe(Message, frozen=True):
    """Asked of a throwaway worker: what can this build and this machine do? Answered with ``Probed``."""


class DryRun(Message, frozen=True):
    """Asked of a throwaway worker: what would this load allocate? Answered with ``DryRunDone``."""

    params: EngineParams


Command = EngineParams | Generate | Cancel | Shutdown | Ping | Probe | DryRun


class Loading(Message, frozen=True):
    """Progress of the load, 0.0 to 1.0."""

    progress: float


class Loaded(Message, frozen=True):
    """The engine is ready. What is really in use, as measured by the engine, not as requested."""

    device: str
    """As the engine names it: ``CPU``, ``CUDA0 NVIDIA GeForce RTX 3090``, ``fake``."""
    slots: int
    max_seq_len: int
    device_note: str | None = None
    """Why that device, where the request left a choice or could not be met."""
    offloaded_layers: int | None = None
    total_layers: int | None = None
    weights_bytes: int | None = None
    kv_cache_bytes: int | None = None
    compute_bytes: int | None = None
    load_s: float = 0.0
    has_chat_template: bool = False
    notes: tuple[str, ...] = ()
    """What people should know: no chat template, a context beyond the trained one …"""


class LoadFailed(Message, frozen=True):
    """The load failed; the worker exits."""

    message: str
    hint: str | None = None
    code: str = "load_failed"


class Started(Message, frozen=True):
    """The request holds a slot and its prompt is tokenised."""

    request_id: str
    slot_id: int
    prompt_tokens: int
    cached_tokens: int = 0


class Prefilled(Message, frozen=True):
    """The prompt is in the KV cache."""

    request_id: str
    prefill_s: float
    prompt_tokens: int


class Delta(Message, frozen=True):
    """New text: whole characters only, never a part of a stop string. ``tokens`` were decoded for it."""

    request_id: str
    text: str
    tokens: int = 1


class Finished(Message, frozen=True):
    """The last event of a request that was served. The slot is free."""

    request_id: str
    finish_reason: Literal["stop", "length", "cancelled"]
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int = 0
    prefill_s: float | None = None
    decode_s: float | None = None


class Refused(Message, frozen=True):
    """The last event of a request that the engine cannot serve (context overflow, bad template …)."""

    request_id: str
    message: str
    hint: str | None = None
    code: str = "invalid_request"
    status: int = 400
    param: str | None = None


class Stats(Message, frozen=True):
    """Sent at most four times a second while anything decodes, and once when all slots fall idle."""

    prefill_tokens: int
    """Tokens prefilled since the load."""
    decode_tokens: int
    """Tokens decoded since the load."""
    slot_tokens: tuple[int, ...] = ()
    """KV cache tokens held per slot, in use or kept for the next request."""


class Pong(Message, frozen=True):
    """Answer to ``Ping``."""

    sent_s: float


class Device(msgspec.Struct, frozen=True, omit_defaults=True):
    """A compute device as ggml's registry names it."""

    name: str
    """``CPU``, ``CUDA0`` …"""
    description: str
    kind: Literal["cpu", "gpu", "igpu", "accel"]
    free_bytes: int | None = None
    total_bytes: int | None = None


class Probed(Message, frozen=True):
    """Answer to ``Probe``."""

    llama_version: str
    gpu_build: bool
    """The build has a GPU backend, whether or not a GPU is there."""
    devices: tuple[Device, ...] = ()


class DryRunDone(Message, frozen=True):
    """Answer to ``DryRun``: llama.cpp's own figures; the compute buffers are full only after the first decode."""

    device: str
    weights_bytes: int | None = None
    kv_cache_bytes: int | None = None
    compute_bytes: int | None = None
    offloaded_layers: int | None = None
    total_layers: int | None = None
    gpu_bytes: int | None = None
    """The part of it in the memory of GPUs; None: none takes part."""
    gpu_free_bytes: int | None = None


RequestEvent = Started | Prefilled | Delta | Finished | Refused
"""Events of one request, in this order: Started, Prefilled, Delta …, Finished; or Refused at any point."""

WorkerEvent = Loading | Loaded | LoadFailed | RequestEvent | Stats | Pong | Probed | DryRunDone


class EngineLoadError(Exception):
    """A load that failed for a reason a person can act on."""

    def __init__(self, message: str, hint: str | None = None, code: str = "load_failed") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code


class ProgressSink(Protocol):
    """Called with 0.0 to 1.0 during a load."""

    def __call__(self, progress: float, /) -> None:
        """Note the progress."""
        ...


class Engine(Protocol):
    """One loaded model with its slots. Single-threaded: the worker's loop calls every method."""

    def load(self, params: EngineParams, progress: ProgressSink) -> Loaded:
        """Load the model.

        Raises:
            EngineLoadError: with the reason and the way out.
        """
        ...

    @property
    def free_slots(self) -> int:
        """Slots that a ``submit`` may take now."""
        ...

    @property
    def busy(self) -> bool:
        """True while any slot has work, so that ``step`` is worth calling."""
        ...

    def submit(self, request: Generate) -> list[RequestEvent]:
        """Give a free slot to the request. Returns ``Started``, or ``Refused`` with the reason.

        Raises:
            RuntimeError: no slot is free (the scheduler must not do this).
        """
        ...

    def cancel(self, request_id: str) -> list[RequestEvent]:
        """Stop the request: ``Finished("cancelled")`` and a free slot; an unknown id returns an empty list."""
        ...

    def step(self) -> list[RequestEvent]:
        """Advance every busy slot by one decode step (at most 512 prompt tokens are prefilled in it)."""
        ...

    def stats(self) -> Stats:
        """Totals since the load."""
        ...

    def close(self) -> None:
        """Free everything. Idempotent."""
        ...
