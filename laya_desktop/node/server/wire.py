"""OpenAI request bodies: strict parsing, and translation to what engines take. Pure functions; no I/O.

A wrong type or value is an error that names the field. A field that would change the answer and that the engine
cannot honour is an error as well; other unknown fields are ignored.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, TypeVar

import msgspec

from laya_desktop.errors import LayaError
from laya_desktop.node.engines.base import Generate, Sampling
from laya_desktop.node.server.faults import invalid, unsupported
from laya_desktop.node.server.unsupported import refuse_unsupported

Penalty = Annotated[float, msgspec.Meta(ge=-2, le=2)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]

_T = TypeVar("_T")
_PLACE = re.compile(r" - at `(?P<key>key in )?\$\.?(?P<path>[^`]*)`$")
_BYTE = re.compile(r" \(byte (\d+)\)")
_MAX_STOPS = 16
_RANDOM_SEED = -1
_SEED_MASK = 0xFFFF_FFFF


class StreamOptions(msgspec.Struct):
    """``stream_options``."""

    include_usage: bool | None = None


class _Common(msgspec.Struct, kw_only=True):
    """What chat and text completions share."""

    model: str | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_tokens: int | None = None
    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = None
    top_p: Share | None = None
    top_k: Annotated[int, msgspec.Meta(ge=-1)] | None = None
    min_p: Share | None = None
    repeat_penalty: Annotated[float, msgspec.Meta(gt=0, le=10)] | None = None
    repetition_penalty: Annotated[float, msgspec.Meta(gt=0, le=10)] | None = None
    frequency_penalty: Penalty | None = None
    presence_penalty: Penalty | None = None
    seed: int | None = None
    stop: str | list[str] | None = None
    logit_bias: dict[str, Annotated[float, msgspec.Meta(ge=-100, le=100)]] | None = None

    @property
    def include_usage(self) -> bool:
        """True where the stream ends with a usage chunk."""
        return self.stream_options is not None and bool(self.stream_options.include_usage)


class ChatMessage(msgspec.Struct):
    """One message; ``content`` is text or a list of parts."""

    role: str
    content: str | list[dict[str, Any]] | None = None
    name: str | None = None
    tool_calls: list[Any] | None = None


class ChatBody(_Common, kw_only=True):
    """``POST /v1/chat/completions``."""

    messages: Annotated[list[ChatMessage], msgspec.Meta(min_length=1)]
    max_completion_tokens: int | None = None


class CompletionBody(_Common, kw_only=True):
    """``POST /v1/completions``."""

    prompt: str | list[Any]
    """A text, token ids, or a list with one of these."""


def warm_up() -> None:
    """Have msgspec compile the bodies' types now and not during the first request (about a millisecond)."""
    chat_to_engine("", parse_chat({"messages": [{"role": "user", "content": ""}]}))
    completion_to_engine("", parse_completion({"prompt": ""}))


def parse_json(body: bytes | bytearray) -> dict[str, Any]:
    """The body as a JSON object, whatever its Content-Type says.

    Raises:
        LayaError: 400 with line and column.
    """
    if not body:
        raise invalid("The request has no body.", hint="Send a JSON object.", code="no_body")
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise _not_json(bytes(body), error) from None
    if not isinstance(value, dict):
        raise invalid("The body is JSON, but not an object.", hint="Send {…}.", code="invalid_json")
    return value


def model_of(body: dict[str, Any]) -> str | None:
    """The body's ``model``.

    Raises:
        LayaError: it is not a string.
    """
    model = body.get("model")
    if model is None or isinstance(model, str):
        return model
    raise invalid("model: expected a string.", "model", code="invalid_type")


def parse_chat(body: dict[str, Any]) -> ChatBody:
    """A chat request. Raises LayaError naming the field."""
    refuse_unsupported(body)
    return convert(body, ChatBody)


def parse_completion(body: dict[str, Any]) -> CompletionBody:
    """A text completion request. Raises LayaError naming the field."""
    refuse_unsupported(body)
    return convert(body, CompletionBody)


def chat_to_engine(request_id: str, body: ChatBody) -> Generate:
    """The chat as engines take it. Raises LayaError naming the field."""
    limit = body.max_completion_tokens
    return Generate(
        request_id=request_id,
        messages=[_message(m, i) for i, m in enumerate(body.messages)],
        max_tokens=_max_tokens(limit, "max_completion_tokens") if limit is not None else _max_tokens(body.max_tokens),
        stop=_stops(body.stop),
        sampling=_sampling(body),
    )


def completion_to_engine(request_id: str, body: CompletionBody) -> Generate:
    """The completion as engines take it. Raises LayaError naming the field."""
    return Generate(
        request_id=request_id,
        prompt=_prompt(body.prompt),
        max_tokens=_max_tokens(body.max_tokens),
        stop=_stops(body.stop),
        sampling=_sampling(body),
    )


def convert(value: Any, kind: type[_T]) -> _T:
    """A decoded JSON value as a struct. Raises LayaError naming the field."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise _invalid_field(str(error)) from None


def _invalid_field(text: str) -> LayaError:
    place = _PLACE.search(text)
    if place is None:
        missing = re.search(r"missing required field `(\w+)`", text)
        param = missing[1] if missing else None
        if param:
            return invalid(f"{param} is missing.", param, hint="Add it to the body.", code="missing_parameter")
        return invalid(f"{text}.", None, code="invalid_type")
    reason = text[: place.start()].replace("`", "")
    missing = re.search(r"missing required field (\w+)", reason)
    path = f"{place['path']}.{missing[1]}".lstrip(".") if missing else place["path"]
    if missing:
        return invalid(f"{path} is missing.", path, hint="Add it to the body.", code="missing_parameter")
    return invalid(f"{path}: {reason[:1].lower()}{reason[1:]}.", path or None, code="invalid_type")


def _not_json(body: bytes, error: Exception) -> LayaError:
    at = _BYTE.search(str(error))
    if at is None:
        reason = "it ends too early" if "truncated" in str(error) else str(error).rstrip(".")
        line, column = body.count(b"\n") + 1, len(body) - (body.rfind(b"\n") + 1) + 1
    else:
        reason = _BYTE.sub("", str(error)).removeprefix("JSON is malformed: ").rstrip(".")
        past = reason == "trailing characters"  # msgspec counts the offender too, in this message only
        before = body[: int(at[1]) - past]
        line, column = before.count(b"\n") + 1, len(before) - (before.rfind(b"\n") + 1) + 1
    return invalid(
        f"The body is not JSON: {reason}, at line {line} column {column}.",
        hint="Send a JSON object.",
        code="invalid_json",
    )


def _max_tokens(value: int | None, param: str = "max_tokens") -> int | None:
    if value is None or value == -1:
        return None
    if value < 1:
        raise invalid(f"{param} is {value}; it must be at least 1.", param, hint="Leave it out for no limit.")
    return value


def _stops(value: str | list[str] | None) -> tuple[str, ...]:
    stops = (value,) if isinstance(value, str) else tuple(value or ())
    if len(stops) > _MAX_STOPS:
        raise invalid(f"stop has {len(stops)} texts; {_MAX_STOPS} are possible.", "stop")
    if "" in stops:
        raise invalid("stop has an empty text.", "stop", hint="Remove it.")
    return stops


def _sampling(body: _Common) -> Sampling:
    names = ("temperature", "top_p", "min_p", "frequency_penalty", "presence_penalty")
    given: dict[str, Any] = {n: v for n in names if (v := getattr(body, n)) is not None}
    if body.top_k is not None:
        given["top_k"] = max(body.top_k, 0)
    penalty = body.repeat_penalty if body.repeat_penalty is not None else body.repetition_penalty
    if penalty is not None:
        given["repeat_penalty"] = penalty
    if body.seed is not None and body.seed != _RANDOM_SEED:
        given["seed"] = body.seed & _SEED_MASK
    if body.logit_bias:
        given["logit_bias"] = {_token_id(k): v for k, v in body.logit_bias.items()}
    return Sampling(**given)


def _token_id(key: str) -> int:
    if not key.isascii() or not key.isdigit():
        raise invalid(
            f"logit_bias: '{key}' is not a token id.", "logit_bias", hint="Use the token's number as the key."
        )
    return int(key)


def _prompt(prompt: str | list[Any]) -> str | list[int]:
    if isinstance(prompt, str):
        return prompt
    if not prompt:
        raise invalid("prompt is empty.", "prompt", hint="Send a text or token ids.")
    if all(type(token) is int and token >= 0 for token in prompt):
        return prompt
    if not all(isinstance(one, str | list) for one in prompt):
        raise invalid("prompt: expected a text or token ids.", "prompt", code="invalid_type")
    if len(prompt) > 1:
        raise unsupported("prompt", f"prompt has {len(prompt)} prompts; one is possible.", "Send one request for each.")
    return _prompt(prompt[0])


def _message(message: ChatMessage, index: int) -> dict[str, object]:
    where = f"messages[{index}]"
    role = "system" if message.role == "developer" else message.role
    if role in ("tool", "function") or message.tool_calls:
        param = f"{where}.tool_calls" if message.tool_calls else f"{where}.role"
        raise unsupported(param, f"{param}: tools are not supported yet.", "Send the result as a user message.")
    if role not in ("system", "user", "assistant"):
        raise invalid(f"{where}.role is '{role}'.", f"{where}.role", hint="Use system, user or assistant.")
    if message.content is None and role != "assistant":
        raise invalid(f"{where}.content is missing.", f"{where}.content", code="missing_parameter")
    made: dict[str, object] = {"role": role, "content": _text(message.content, f"{where}.content")}
    if message.name is not None:
        made["name"] = message.name
    return made


def _text(content: str | list[dict[str, Any]] | None, where: str) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    texts = []
    for i, part in enumerate(content):
        kind = part.get("type")
        if kind not in ("text", "refusal"):
            raise unsupported(
                f"{where}[{i}].type",
                f"{where}[{i}].type: parts of type '{kind}' are not supported; this node serves text models.",
                "Send parts of type text.",
            )
        text = part.get(kind)
        if not isinstance(text, str):
            raise invalid(f"{where}[{i}].{kind}: expected a string.", f"{where}[{i}].{kind}", code="invalid_type")
        texts.append(text)
    return "".join(texts)
