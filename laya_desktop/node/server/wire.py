"""OpenAI request bodies: strict parsing, and translation to what engines take. Pure functions; no I/O.

A wrong type or value is an error that names the field. A field that would change the answer and that the engine
cannot honour is an error as well; other unknown fields are ignored.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, TypeVar

import msgspec

from laya_desktop.errors import LayaError
from laya_desktop.node.engines.base import Generate
from laya_desktop.node.server.faults import invalid, unsupported
from laya_desktop.node.server.unsupported import refuse_unsupported
from laya_desktop.node.server.wire_formats import FormatBody, format_of, tools_of
from laya_desktop.node.server.wire_messages import ChatMessage, message_of
from laya_desktop.node.server.wire_sampling import sampling_of

_T = TypeVar("_T")
_PLACE = re.compile(r" - at `(?P<key>key in )?\$\.?(?P<path>[^`]*)`$")
_BYTE = re.compile(r" \(byte (\d+)\)")
_MAX_STOPS = 16
_MOST_LOGPROBS = 20


class StreamOptions(msgspec.Struct):
    """``stream_options``."""

    include_usage: bool | None = None


class _Common(FormatBody, kw_only=True):
    """What chat and text completions share."""

    model: str | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_tokens: int | None = None
    stop: str | list[str] | None = None
    n: Annotated[int, msgspec.Meta(ge=1, le=128)] | None = None
    min_tokens: Annotated[int, msgspec.Meta(ge=0)] | None = None
    ignore_eos: bool | None = None
    stop_token_ids: list[Annotated[int, msgspec.Meta(ge=0)]] | None = None

    @property
    def include_usage(self) -> bool:
        """True where the stream ends with a usage chunk."""
        return self.stream_options is not None and bool(self.stream_options.include_usage)


class ChatBody(_Common, kw_only=True):
    """``POST /v1/chat/completions``."""

    messages: Annotated[list[ChatMessage], msgspec.Meta(min_length=1)]
    max_completion_tokens: int | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, msgspec.Meta(ge=0, le=_MOST_LOGPROBS)] | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    reasoning_effort: str | None = None
    chat_template_kwargs: dict[str, Any] | None = None


class CompletionBody(_Common, kw_only=True):
    """``POST /v1/completions``."""

    prompt: str | list[Any]
    """A text, token ids, or a list with one of these."""
    logprobs: Annotated[int, msgspec.Meta(ge=0, le=_MOST_LOGPROBS)] | None = None


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
        messages=[message_of(m, i) for i, m in enumerate(body.messages)],
        max_tokens=_max_tokens(limit, "max_completion_tokens") if limit is not None else _max_tokens(body.max_tokens),
        logprobs=_chat_logprobs(body),
        template_values=_template_values(body),
        **tools_of(body.tools, body.tool_choice, body.parallel_tool_calls),
        **_common(body),
    )


def completion_to_engine(request_id: str, body: CompletionBody) -> Generate:
    """The completion as engines take it. Raises LayaError naming the field."""
    return Generate(
        request_id=request_id,
        prompt=_prompt(body.prompt),
        max_tokens=_max_tokens(body.max_tokens),
        logprobs=body.logprobs,
        **_common(body),
    )


def _common(body: _Common) -> dict[str, Any]:
    return {
        "stop": _stops(body.stop),
        "sampling": sampling_of(body),
        "n": body.n or 1,
        "min_tokens": body.min_tokens or 0,
        "ignore_eos": bool(body.ignore_eos),
        "stop_tokens": tuple(body.stop_token_ids or ()),
        "answer_format": format_of(body),
    }


def _chat_logprobs(body: ChatBody) -> int | None:
    if body.logprobs:
        return body.top_logprobs or 0
    if body.top_logprobs:
        raise invalid("top_logprobs needs logprobs.", "top_logprobs", hint="Set logprobs to true.")
    return None


def _template_values(body: ChatBody) -> dict[str, object]:
    """Variables for the chat template. No effort at all also switches thinking off, where the template can."""
    values: dict[str, object] = {}
    if body.reasoning_effort is not None:
        values["reasoning_effort"] = body.reasoning_effort
        if body.reasoning_effort == "none":
            values["enable_thinking"] = False
    return values | (body.chat_template_kwargs or {})


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
