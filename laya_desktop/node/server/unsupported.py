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

RULES: dict[str, Rule] = {
    "best_of": Rule((None, 1), "the server does not choose among answers", "Use n, and choose yourself."),
    "echo": Rule((None, False), "echoing the prompt is not supported", "Put the prompt in front yourself."),
    "suffix": Rule((None, ""), "filling in the middle is not supported yet", _LEAVE_OUT),
    "functions": Rule((None, []), "the old form of tools is not supported", "Use tools."),
    "function_call": Rule((None, "none", "auto"), "the old form of tools is not supported", "Use tool_choice."),
    "guided_regex": Rule(
        _NOTHING, "regular expressions are not supported", "Use a grammar or a JSON schema's pattern."
    ),
    "modalities": Rule((None, [], ["text"]), "answers are text only", _LEAVE_OUT),
    "audio": Rule((None,), "answers are text only", _LEAVE_OUT),
    "web_search_options": Rule((None,), "web search is not supported", _LEAVE_OUT),
    "n_predict": Rule((None, -1), "this name is not known here", "Use max_tokens."),
    "bad_words": Rule((None, []), "banned words are not supported", "Use logit_bias."),
    "samplers": Rule(_NOTHING, _SAMPLER, _LEAVE_OUT),
    "tfs_z": Rule((None, 1), _SAMPLER, "Use top_p or min_p."),
    "length_penalty": Rule((None, 1), _SAMPLER, _LEAVE_OUT),
    "use_beam_search": Rule((None, False), "beam search is not supported", _LEAVE_OUT),
    "chat_template": Rule(_NOTHING, "the model's own chat template is used", _LEAVE_OUT),
    "lora": Rule(_NOTHING, "adapters belong to a model, not to a request", "Set lora in the model's configuration."),
}


def refuse_unsupported(body: dict[str, Any]) -> None:
    """Raises LayaError for the first field that the engine cannot honour."""
    for name in sorted(body.keys() & RULES.keys()):
        rule = RULES[name]
        if not any(body[name] == ok and isinstance(body[name], bool) == isinstance(ok, bool) for ok in rule.harmless):
            raise unsupported(name, f"{name}: {rule.what}.", rule.hint)
