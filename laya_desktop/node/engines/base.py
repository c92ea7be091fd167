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


class Adapter(msgspec.Struct, frozen=True, array_like=True):
    """An adapter (LoRA) and how strongly it acts."""

    path: str
    scale: float = 1.0


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
    kv_type: str = "f16"
    flash_attention: Literal["auto", "on", "off"] = "auto"
    mmap: bool = True
    mlock: bool = False
    rope_freq_base: float | None = None
    """None: the model's own."""
    rope_freq_scale: float | None = None
    lora: tuple[Adapter, ...] = ()
    pooling: Literal["auto", "none", "mean", "cls", "last", "rank"] = "auto"
    """How a text's tokens become one vector; ``auto``: as the model's file says, else the mean."""
    memory_limit_bytes: int | None = None
    """RAM that a model on the CPU may hold besides mapped files; the kernel refuses it more. None: no limit."""


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
    typical_p: float = 1.0
    top_n_sigma: float = -1.0
    repeat_last_n: int = 64
    """Tokens that the penalties look at, the prompt's end included; -1: the whole context."""
    dynatemp_range: float = 0.0
    dynatemp_exponent: float = 1.0
    mirostat: Literal[0, 1, 2] = 0
    mirostat_tau: float = 5.0
    mirostat_eta: float = 0.1
    dry_multiplier: float = 0.0
    dry_base: float = 1.75
    dry_allowed_length: int = 2
    dry_penalty_last_n: int = -1
    dry_sequence_breakers: tuple[str, ...] = ("\n", ":", '"', "*")
    xtc_probability: float = 0.0
    xtc_threshold: float = 0.1


class AnswerFormat(msgspec.Struct, frozen=True):
    """What the answer must be. ``text`` is a JSON schema as JSON, or a grammar as GBNF."""

    kind: Literal["json_schema", "grammar"]
    text: str


Task = Literal["answer", "embed", "tokenize", "detokenize"]


class Generate(Message, frozen=True):
    """One request, mostly for one or more answers to a prompt. Exactly one of ``messages`` and ``prompt`` is given.

    Other tasks take one slot like an answer does: ``embed`` makes a vector for each of ``inputs``, ``tokenize`` gives
    the prompt's tokens, ``detokenize`` the text of a prompt that is given as tokens.
    """

    request_id: str
    messages: list[dict[str, object]] | None = None
    """Chat messages in OpenAI's form; the worker renders them with the model's own chat template."""
    prompt: str | list[int] | None = None
    max_tokens: int | None = None
    """None: as many as the context holds."""
    stop: tuple[str, ...] = ()
    sampling: Sampling = Sampling()
    tools: list[dict[str, object]] | None = None
    """In OpenAI's form; with them, calls in the answer are told apart from its text."""
    n: int = 1
    """Answers ("choices"); each takes a slot. Answer i draws with seed + i."""
    logprobs: int | None = None
    """Alternatives reported for each token (0: the token's own probability alone); None: nothing."""
    min_tokens: int = 0
    """Neither the end of text nor a stop token is drawn before so many tokens."""
    ignore_eos: bool = False
    stop_tokens: tuple[int, ...] = ()
    answer_format: AnswerFormat | None = None
    tool_choice: Literal["auto", "required"] = "auto"
    """``required``: the answer is one or more calls of ``tools``, enforced token by token."""
    tool_name: str | None = None
    """With ``required``: the one tool to call."""
    parallel_tool_calls: bool | None = None
    """False: the answer ends with its first call. None: as the model likes, but one where a call is required."""
    template_values: dict[str, object] = {}
    """More variables for the chat template: ``enable_thinking``, ``reasoning_effort`` …"""
    task: Task = "answer"
    inputs: list[str | list[int]] = []
    """What ``embed`` makes vectors of: texts, or their tokens."""
    dimensions: int | None = None
    """Values of each vector, at most the model's own number; None: all of them."""
    add_special: bool = True
    """Put the beginning of text before a bare prompt, where the model wants one."""


class Cancel(Message, frozen=True):
    """Stop a generation; its slot is free after the current step."""

    request_id: str


class Shutdown(Message, frozen=True):
    """End the worker."""


class Ping(Message, frozen=True):
    """Answered with ``Pong`` between two steps."""

    sent_s: float


class Heartbeat(Message, frozen=True):
    """Answered with ``Pulse`` at once, whatever the engine is doing."""


class Probe(Message, frozen=True):
    """Asked of a throwaway worker: what can this build and this machine do? Answered with ``Probed``."""


class DryRun(Message, frozen=True):
    """Asked of a throwaway worker: what would this load allocate? Answered with ``DryRunDone``."""

    params: EngineParams


Command = EngineParams | Generate | Cancel | Shutdown | Ping | Heartbeat | Probe | DryRun


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
    more_slots: tuple[int, ...] = ()
    """The slots of the second answer and those after it."""


class Prefilled(Message, frozen=True):
    """The prompt is in the KV cache."""

    request_id: str
    prefill_s: float
    prompt_tokens: int


FinishReason = Literal["stop", "length", "tool_calls", "cancelled"]


class TokenLogprob(msgspec.Struct, frozen=True, array_like=True):
    """A drawn token with its natural log probability, before any sampling setting acts on it."""

    token: int
    piece: bytes
    """Possibly a part of a character."""
    logprob: float
    """At least -9999, which stands for impossible."""
    top: tuple[tuple[bytes, float], ...] = ()
    """The most likely ones in falling order, as many as were asked for."""


class ToolCallPart(msgspec.Struct, frozen=True, omit_defaults=True):
    """A call (``call_id`` and ``name``, once, first) or more of its arguments."""

    index: int
    """Of the call within its answer."""
    call_id: str | None = None
    name: str | None = None
    arguments: str = ""
    """A piece of JSON text; the pieces of a call make one object."""


class Delta(Message, frozen=True):
    """More of one answer: whole characters only, never a part of a stop string. ``tokens`` were decoded for it."""

    request_id: str
    text: str
    tokens: int = 1
    index: int = 0
    """Which answer, where the request asked for several."""
    reasoning: str = ""
    """What the model marked as thinking; it is not in ``text``."""
    tool_calls: tuple[ToolCallPart, ...] = ()
    logprobs: tuple[TokenLogprob, ...] = ()
    finish_reason: FinishReason | None = None
    """Of an answer that ends while others of its request may go on; with one answer only ``Finished`` says it."""


class Vector(Message, frozen=True):
    """The embedding of one input: ``values`` are 32-bit floats, little-endian, of length 1 (L2 norm)."""

    request_id: str
    index: int
    values: bytes


class Tokens(Message, frozen=True):
    """The tokens of a text, and the bytes that each stands for (possibly a part of a character)."""

    request_id: str
    tokens: tuple[int, ...]
    pieces: tuple[bytes, ...]


class Finished(Message, frozen=True):
    """The last event of a request that was served. Its slots are free; tokens of all answers are summed."""

    request_id: str
    finish_reason: FinishReason
    """Of the first answer."""
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int = 0
    prefill_s: float | None = None
    decode_s: float | None = None
    reasoning_tokens: int = 0
    """Of ``completion_tokens``, those that were thinking."""


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


class Pulse(Message, frozen=True):
    """Answer to ``Heartbeat``."""

    cpu_s: float
    """CPU seconds of the process since its start."""
    step_s: float | None = None
    """Seconds that the present step has taken; None: the engine waits."""


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
    other_bytes: int | None = None
    """RAM of a worker on the CPU besides those: program, vocabulary, graphs, weights repacked for the processor,
    scratch of the CPU backend."""


RequestEvent = Started | Prefilled | Delta | Vector | Tokens | Finished | Refused
"""Events of one request, in this order: Started, Prefilled, Delta …, Finished; or Refused at any point.

``Vector``, ``Tokens`` and one ``Delta`` are what the other tasks give in place of an answer.
"""

WorkerEvent = Loading | Loaded | LoadFailed | RequestEvent | Stats | Pong | Pulse | Probed | DryRunDone


class EngineLoadError(Exception):
    """A load that failed for a reason a person can act on."""

    def __init__(self, message: str, hint: str | None = None, code: str = "load_failed") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code


class NoFreeSlotError(RuntimeError):
    """Fewer slots are free than a request needs: the scheduler must not let it come to this."""


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
        """Give ``request.n`` free slots to the request. Returns ``Started``, or ``Refused`` with the reason.

        Raises:
            NoFreeSlotError: too few slots are free.
        """
        ...

    def cancel(self, request_id: str) -> list[RequestEvent]:
        """Stop the request: ``Finished("cancelled")`` and free slots; an unknown id returns an empty list."""
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
