"""What the PyTorch engine does not do, said before a slot is given. Pure; worker only.

Requests grow new fields with the llama.cpp engine. One that this engine does not know is refused by name as soon as it
is set, never silently ignored.
"""

from __future__ import annotations

import msgspec

from laya_desktop.node.engines.base import Generate, Refused

_GENERATE = {
    "request_id", "messages", "prompt", "max_tokens", "stop", "sampling", "tools", "parallel_tool_calls",
    "template_values", "task", "inputs", "add_special", "dimensions",
}  # fmt: skip
_SAMPLING = {
    "temperature", "top_k", "top_p", "min_p", "repeat_penalty", "frequency_penalty", "presence_penalty", "seed",
    "logit_bias",
}  # fmt: skip

_WIRE_NAMES = {"answer_format": "response_format", "stop_tokens": "stop_token_ids", "tool_name": "tool_choice"}
"""What callers call it."""


def refuse_unknown(request: Generate) -> Refused | None:
    """The refusal of a request that asks for more than this engine can, or None."""
    name = _set_beyond(request, _GENERATE) or _set_beyond(request.sampling, _SAMPLING)
    if name is None:
        return None
    name = _WIRE_NAMES.get(name, name)
    return Refused(
        request.request_id,
        f"The engine 'transformers' does not support {name}.",
        "Leave it out, or serve the model's GGUF version with engine llama_cpp.",
        code="unsupported",
        param=name,
    )


def _set_beyond(value: msgspec.Struct, known: set[str]) -> str | None:
    """The first field outside ``known`` that differs from its default."""
    for field in msgspec.structs.fields(value):
        if field.name in known:
            continue
        default = field.default if field.default is not msgspec.NODEFAULT else None
        if default is None and field.default_factory is not msgspec.NODEFAULT:
            default = field.default_factory()
        if getattr(value, field.name) != default:
            return field.name
    return None
