"""Request fields that change the answer and that the engine cannot honour. Pure; the list is the documentation.

Each field has the values that ask for nothing special, and what to do instead. Any other value is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from laya_desktop.node.server.faults import unsupported


@dataclass(frozen=True, slots=True)
class Rule:
    """A field, the values of it that change nothing, and the way out."""

    harmless: tuple[Any, ...]
    what: str
    hint: str | None = None


_NOTHING: tuple[Any, ...] = (None, False, 0, "", [], {})
_LEAVE_OUT = "Leave it out."
_SAMPLER = "this sampler is not supported"
_GRAMMAR = "constrained output is not supported yet"
_PROMPT = "Ask for the format in the prompt."

RULES: dict[str, Rule] = {
    "n": Rule((None, 1), "one choice per request is possible", "Send the request several times."),
    "best_of": Rule((None, 1), "one choice per request is possible", "Send the request several times."),
    "logprobs": Rule((None, False), "log probabilities are not supported yet", _LEAVE_OUT),
    "top_logprobs": Rule((None, 0), "log probabilities are not supported yet", _LEAVE_OUT),
    "echo": Rule((None, False), "echoing the prompt is not supported", "Put the prompt in front yourself."),
    "suffix": Rule((None, ""), "filling in the middle is not supported yet", _LEAVE_OUT),
    "tools": Rule((None, []), "tools are not supported yet", _LEAVE_OUT),
    "tool_choice": Rule((None, "none", "auto"), "tools are not supported yet", _LEAVE_OUT),
    "functions": Rule((None, []), "tools are not supported yet", _LEAVE_OUT),
    "function_call": Rule((None, "none", "auto"), "tools are not supported yet", _LEAVE_OUT),
    "response_format": Rule((None, {"type": "text"}), _GRAMMAR, _PROMPT),
    "grammar": Rule(_NOTHING, _GRAMMAR, _PROMPT),
    "json_schema": Rule(_NOTHING, _GRAMMAR, _PROMPT),
    "guided_json": Rule(_NOTHING, _GRAMMAR, _PROMPT),
    "guided_regex": Rule(_NOTHING, _GRAMMAR, _PROMPT),
    "guided_choice": Rule(_NOTHING, _GRAMMAR, _PROMPT),
    "guided_grammar": Rule(_NOTHING, _GRAMMAR, _PROMPT),
    "structured_outputs": Rule(_NOTHING, _GRAMMAR, _PROMPT),
    "modalities": Rule((None, [], ["text"]), "answers are text only", _LEAVE_OUT),
    "audio": Rule((None,), "answers are text only", _LEAVE_OUT),
    "web_search_options": Rule((None,), "web search is not supported", _LEAVE_OUT),
    "reasoning_effort": Rule((None, "none"), "reasoning effort is not supported", _LEAVE_OUT),
    "n_predict": Rule((None, -1), "this name is not known here", "Use max_tokens."),
    "min_tokens": Rule((None, 0), "a least length is not supported", _LEAVE_OUT),
    "ignore_eos": Rule((None, False), "ignoring the end of text is not supported", _LEAVE_OUT),
    "stop_token_ids": Rule((None, []), "stop tokens are not supported", "Use stop with texts."),
    "bad_words": Rule((None, []), "banned words are not supported", "Use logit_bias."),
    "samplers": Rule(_NOTHING, _SAMPLER, _LEAVE_OUT),
    "typical_p": Rule((None, 1), _SAMPLER, "Use top_p or min_p."),
    "tfs_z": Rule((None, 1), _SAMPLER, "Use top_p or min_p."),
    "mirostat": Rule((None, 0), _SAMPLER, "Use top_p or min_p."),
    "dynatemp_range": Rule((None, 0), _SAMPLER, "Use temperature."),
    "dry_multiplier": Rule((None, 0), _SAMPLER, "Use repeat_penalty."),
    "xtc_probability": Rule((None, 0), _SAMPLER, _LEAVE_OUT),
    "length_penalty": Rule((None, 1), _SAMPLER, _LEAVE_OUT),
    "use_beam_search": Rule((None, False), "beam search is not supported", _LEAVE_OUT),
    "chat_template": Rule(_NOTHING, "the model's own chat template is used", _LEAVE_OUT),
    "chat_template_kwargs": Rule(_NOTHING, "the model's own chat template is used", _LEAVE_OUT),
    "lora": Rule(_NOTHING, "adapters are not supported", _LEAVE_OUT),
}


def refuse_unsupported(body: dict[str, Any]) -> None:
    """Raises LayaError for the first field that the engine cannot honour."""
    for name in sorted(body.keys() & RULES.keys()):
        rule = RULES[name]
        if not any(body[name] == ok and isinstance(body[name], bool) == isinstance(ok, bool) for ok in rule.harmless):
            raise unsupported(name, f"{name}: {rule.what}.", rule.hint)
