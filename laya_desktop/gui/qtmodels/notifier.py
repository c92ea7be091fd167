"""Which events the desktop is told about, and how often. Pure; time is given."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from laya_desktop.gui.i18n import tr
from laya_desktop.gui.qtmodels.node_words import in_words
from laya_desktop.state.events import AlertRaised, Event, ModelFailed

SAME_S = 60.0
"""The same thing is said again after this long at the earliest, unless it got worse."""
MOST, WINDOW_S = 3, 60.0
"""At most so many in this time, whatever happens."""


@dataclass(frozen=True, slots=True)
class Note:
    """A notification, and the page that it leads to."""

    title: str
    text: str
    page: str
    critical: bool = False


class Notifier:
    """Decides what is said; remembers what was."""

    def __init__(self) -> None:
        self._said: dict[str, float] = {}
        self._recent: deque[float] = deque(maxlen=MOST)

    def take(self, event: Event, now_s: float) -> Note | None:
        """The notification of an event, or None where it is not worth one or too many were shown."""
        match event:
            case AlertRaised(level="warn" | "critical"):
                key, bad = f"{event.resource}:{event.level}", event.level == "critical"
                title = tr("Critical") if bad else tr("Warning")
                note = Note(title, f"{in_words(event.text)}.", "Overview", bad)
            case ModelFailed():
                key = f"model:{event.model}"
                note = Note(tr("Model {name} failed", name=event.model), event.error, "Models")
            case _:
                return None
        if now_s - self._said.get(key, -SAME_S) < SAME_S:
            return None
        if len(self._recent) == MOST and now_s - self._recent[0] < WINDOW_S:
            return None
        self._said[key] = now_s
        self._recent.append(now_s)
        return note
