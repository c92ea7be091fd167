"""What the Playground sends and reads: destinations, bodies, snippets, the stream's events, timings. Pure; no Qt."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from laya_desktop.gui import format as fmt
from laya_desktop.gui.i18n import QT_TR_NOOP, tr
from laya_desktop.gui.qtmodels import model_curl

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from laya_desktop.config.schema import NodeConfig, RouteConfig

STANDARD_PATH = "/v1/chat/completions"
_CHAT = "/chat/completions"
KEY_VARIABLE = "LAYA_API_KEY"


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a chat can go: a route, or a model by its name on the standard path."""

    key: str
    text: str
    path: str
    model: str | None
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Draft:
    """One chat as the form has it; None leaves a setting to the node."""

    messages: tuple[tuple[str, str], ...]
    """(role, text) pairs, oldest first, without the system prompt."""
    system: str = ""
    temperature: float | None = None
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Timings:
    """What is known of one answer so far; unknown is None."""

    routing_us: float | None = None
    queue_ms: float | None = None
    ttft_ms: float | None = None
    decode_tokens_per_s: float | None = None
    total_s: float | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None
    route: str | None = None
    target: str | None = None
    cache: str | None = None


TIMING_NAMES = (
    QT_TR_NOOP("Routing"),
    QT_TR_NOOP("Queue"),
    QT_TR_NOOP("First token"),
    QT_TR_NOOP("Decode"),
    QT_TR_NOOP("Total"),
    QT_TR_NOOP("Prompt"),
    QT_TR_NOOP("Answer"),
)


def timing_texts(timings: Timings) -> tuple[str, ...]:
    """A text for each of ``TIMING_NAMES``; unknown shows as "–"."""
    cached = (
        tr(" ({cached_tokens} cached)", cached_tokens=fmt.count(timings.cached_tokens)) if timings.cached_tokens else ""
    )
    return (
        fmt.micros(timings.routing_us),
        fmt.seconds(_s(timings.queue_ms)),
        fmt.seconds(_s(timings.ttft_ms)),
        fmt.rate(timings.decode_tokens_per_s),
        fmt.seconds(timings.total_s),
        f"{_tokens(timings.prompt_tokens)}{cached}",
        _tokens(timings.completion_tokens),
    )


def destinations(config: NodeConfig | None) -> tuple[Destination, ...]:
    """Routes that take a chat as it is, in file order, then every model by name."""
    if config is None:
        return ()
    models = {m.name for m in config.models}
    routes = [_of_route(r, models) for r in config.routes if model_curl.takes_chats(r)]
    named = [
        Destination(f"model:{m.name}", tr("Model {name}", name=m.name), STANDARD_PATH, m.name) for m in config.models
    ]
    return (*routes, *named)


def _of_route(route: RouteConfig, models: set[str]) -> Destination:
    match, target = route.match, route.target_names[0]
    model = match.model or (target if target in models else None)
    path = model_curl.chat_path(match)
    headers = tuple((n, v) for n, _, v in (line.partition(": ") for line in model_curl.conditions(match)))
    return Destination(
        f"route:{route.name}", tr("Route {name}  ·  {path}", name=route.name, path=path), path, model, headers
    )


def body(destination: Destination, draft: Draft) -> dict[str, Any]:
    """The JSON body of the request; it streams and asks for token counts."""
    system = [{"role": "system", "content": draft.system}] if draft.system.strip() else []
    made: dict[str, Any] = {} if destination.model is None else {"model": destination.model}
    made["messages"] = [*system, *({"role": role, "content": text} for role, text in draft.messages)]
    if draft.temperature is not None:
        made["temperature"] = draft.temperature
    if draft.max_tokens is not None:
        made["max_tokens"] = draft.max_tokens
    return made | {"stream": True, "stream_options": {"include_usage": True}}


def curl_text(url: str, destination: Destination, draft: Draft, *, needs_key: bool) -> str:
    """The request as a curl command; a key is named by its variable, never written out."""
    parts = ["curl", "-N", shlex.quote(url.rstrip("/") + destination.path)]
    for name, value in (("Content-Type", "application/json"), *destination.headers):
        parts += ["-H", shlex.quote(f"{name}: {value}")]
    if needs_key:
        parts += ["-H", f'"Authorization: Bearer ${KEY_VARIABLE}"']
    return " ".join([*parts, "-d", shlex.quote(json.dumps(body(destination, draft), ensure_ascii=False))])


def python_text(url: str, destination: Destination, draft: Draft, *, needs_key: bool) -> str:
    """The request as a Python program: the openai package, or the standard library where the path forbids it."""
    key = f'os.environ["{KEY_VARIABLE}"]' if needs_key else '"none"'
    imports = "import os\n" if needs_key else ""
    base = url.rstrip("/")
    made = body(destination, draft)
    if destination.path.endswith(_CHAT):
        made.setdefault("model", "default")
        lines = [f"    {name}={value!r}," for name, value in made.items()]
        if destination.headers:
            lines.append(f"    extra_headers={dict(destination.headers)!r},")
        client = f"OpenAI(base_url={base + destination.path.removesuffix(_CHAT)!r}, api_key={key})"
        return (
            f"{imports}from openai import OpenAI\n\nclient = {client}\n"
            "stream = client.chat.completions.create(\n" + "\n".join(lines) + "\n)\n"
            'for chunk in stream:\n    if chunk.choices:\n        print(chunk.choices[0].delta.content or "", '
            'end="", flush=True)\n'
        )
    headers = repr({"Content-Type": "application/json", **dict(destination.headers)})
    if needs_key:
        headers = f'{headers[:-1]}, "Authorization": "Bearer " + {key}}}'
    return (
        f"import json\n{imports}import urllib.request\n\nbody = {made!r}\n"
        f"request = urllib.request.Request({base + destination.path!r}, json.dumps(body).encode(), {headers})\n"
        "with urllib.request.urlopen(request) as answer:\n    for line in answer:\n"
        '        print(line.decode(), end="", flush=True)\n'
    )


class SnippetWriter(Protocol):
    """``curl_text`` or ``python_text``."""

    def __call__(self, url: str, destination: Destination, draft: Draft, /, *, needs_key: bool) -> str:
        """The text to copy."""
        ...


class StreamReader:
    """Server-sent events from bytes that arrive in any pieces."""

    def __init__(self) -> None:
        self._rest = b""
        self.done = False
        """``[DONE]`` has come: the answer is whole."""

    def feed(self, data: bytes) -> list[dict[str, Any]]:
        """The JSON objects of the events that are complete now."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        found = []
        for line in lines:
            if not line.startswith(b"data:"):
                continue
            value = line[5:].strip()
            if value == b"[DONE]":
                self.done = True
                continue
            chunk = _object(value)
            if chunk is not None:
                found.append(chunk)
        return found


def delta_text(chunk: Mapping[str, Any]) -> str:
    """The new text of the first choice."""
    choices = chunk.get("choices") or [{}]
    delta = choices[0].get("delta") or {}
    return str(delta.get("content") or "")


def finish_reason(chunk: Mapping[str, Any]) -> str | None:
    """Why the answer ended, where this chunk says it."""
    choices = chunk.get("choices") or [{}]
    reason = choices[0].get("finish_reason")
    return None if reason is None else str(reason)


def error_text(data: bytes, status: int | None) -> str:
    """What an error body says, in OpenAI's form or any other."""
    parsed = _object(data)
    error = None if parsed is None else parsed.get("error")
    if isinstance(error, dict) and error.get("message"):
        return str(error["message"])
    if isinstance(error, str) and error:
        return error
    plain = data.decode("utf-8", "replace").strip()[:300]
    return plain or tr("The node answered {status} without a reason. The Logs page has the details.", status=status)


def number(text: object) -> float | None:
    """A header's or a field's number; None where it is none."""
    try:
        return None if text is None or text == "" else float(str(text))
    except ValueError:
        return None


def summary(timings: Timings, ending: str) -> str:
    """One quiet line under an answer: how it ended, and the phases that are known."""
    wanted = ("Routing", "Queue", "First token", "Decode", "Total")
    pairs = zip(TIMING_NAMES, timing_texts(timings), strict=True)
    known: Iterable[str] = (f"{tr(n).lower()} {v}" for n, v in pairs if n in wanted and v != fmt.NONE)
    return "  ·  ".join([*([ending] if ending else ()), *known])


def _object(data: bytes) -> dict[str, Any] | None:
    try:
        parsed = json.loads(data)
    except ValueError:
        return None
    return parsed if isinstance(parsed, dict) else None


def _s(value_ms: float | None) -> float | None:
    return None if value_ms is None else value_ms / 1000


def _tokens(value: int | None) -> str:
    return fmt.NONE if value is None else fmt.counted(value, "token")
