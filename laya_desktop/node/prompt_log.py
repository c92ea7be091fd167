"""Prompts and answers in the log, for those who switch ``log.prompts`` on; otherwise nothing of them is written."""

from __future__ import annotations

import json
import logging
from collections import defaultdict
from typing import TYPE_CHECKING

from laya_desktop.node.engines.base import Delta, Finished

if TYPE_CHECKING:
    from laya_desktop.node.engines.base import Generate, RequestEvent

log = logging.getLogger(__name__)
MOST_CHARACTERS = 4_000
"""Of one prompt or answer; the middle of a longer one is left out."""


class PromptLog:
    """Writes one request and, when it is complete, its answers.

    Args:
        model: who answers.
        request: what was asked.
    """

    def __init__(self, model: str, request: Generate) -> None:
        self._model, self._id = model, request.request_id
        self._answers: defaultdict[int, list[str]] = defaultdict(list)
        log.info("%s asks '%s' (%s): %s", self._id, model, request.task, _cut(_asked(request)))

    def note(self, event: RequestEvent) -> None:
        """Take an event of the answer."""
        if isinstance(event, Delta):
            self._answers[event.index].append(event.text)
        elif isinstance(event, Finished):
            for index, parts in sorted(self._answers.items()):
                log.info("'%s' answers %s (choice %d): %s", self._model, self._id, index, _cut("".join(parts)))


def _asked(request: Generate) -> str:
    if request.messages is not None:
        return json.dumps(request.messages, ensure_ascii=False)
    return json.dumps(request.inputs or request.prompt, ensure_ascii=False)


def _cut(text: str) -> str:
    if len(text) <= MOST_CHARACTERS:
        return text
    half = MOST_CHARACTERS // 2
    return f"{text[:half]} … {len(text) - 2 * half} characters … {text[-half:]}"
