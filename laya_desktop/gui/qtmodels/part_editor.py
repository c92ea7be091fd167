"""Which route or model a form shows, what was typed, what is wrong with it, and when it acts. Qt main thread.

Knows neither widgets nor the bridge: the form hands in what was typed, and gets back fields and problems to show.
Valid edits of a part in force act after a short rest; wrong ones stay here, by part, until they are put right or
discarded, whatever snapshots arrive meanwhile. A new part is a draft until ``add_draft``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from PySide6.QtCore import QObject, QTimer, Signal

from laya_desktop.config.schema import NodeConfig
from laya_desktop.errors import ConfigError, LayaError, Problem

Fields = TypeVar("Fields")
REST_MS = 300
"""How long the keyboard rests before an edit acts."""


class ApplyConfig(Protocol):
    """``bridge.apply_config``."""

    def __call__(
        self,
        config: NodeConfig,
        done: Callable[[Any], None] | None = None,
        failed: Callable[[LayaError], None] | None = None,
    ) -> None:
        """Put a configuration in force."""
        ...


@dataclass(frozen=True)
class PartKind(Generic[Fields]):
    """What the editor must know about routes or models; pure functions.

    Attributes:
        section: the configuration's list, ``routes`` or ``models``.
        fields_of: the fields of a part in force.
        find: the part of that name, or None.
        parse: ``(fields, config, name or None) -> (part or None, problems)``; locations are relative to the part.
        put: the configuration with a part added or in the place of a name.
        explain: problems by field; the key None is the whole form.
    """

    section: str
    fields_of: Callable[[Any], Fields]
    find: Callable[[NodeConfig, str], Any]
    parse: Callable[[Fields, NodeConfig, str | None], tuple[Any, list[Problem]]]
    put: Callable[[NodeConfig, Any, str | None], NodeConfig]
    explain: Callable[[list[Problem], Fields], dict[str | None, str]]


@dataclass(frozen=True)
class _Unfinished(Generic[Fields]):
    fields: Fields
    problems: dict[str | None, str]


class PartEditor(QObject, Generic[Fields]):
    """The state behind one form."""

    shown = Signal()
    """Another part, or other values from outside: the form takes ``fields``."""
    judged = Signal()
    """``problems`` or ``dirty`` changed; what was typed stays."""
    applied = Signal(object, object, str)
    """Configuration before and after an edit of ours, and the name of the part."""

    def __init__(
        self,
        kind: PartKind[Fields],
        config: Callable[[], NodeConfig | None],
        apply: ApplyConfig,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._kind, self._config, self._apply = kind, config, apply
        self._part: Any = None
        self._unfinished: dict[str, _Unfinished[Fields]] = {}
        self._draft: Fields | None = None
        self.name: str | None = None
        """The part shown; None: nothing, or a draft."""
        self.fields: Fields | None = None
        """What the form holds; None: nothing is shown."""
        self.problems: dict[str | None, str] = {}
        self.dirty = False
        """True while the form holds something that is not in force."""
        self._held = False
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(REST_MS)
        self._timer.timeout.connect(self._on_rest)

    @property
    def is_draft(self) -> bool:
        """True while the form shows a part that is not in the configuration yet."""
        return self.fields is not None and self.name is None

    @property
    def unfinished(self) -> frozenset[str]:
        """Names of parts with edits that are not in force."""
        current = {self.name} if self.name is not None and self.dirty and self.problems else set()
        return frozenset(set(self._unfinished) | current)

    def show(self, name: str | None) -> None:
        """Show a part of the configuration, with the edits that were left unfinished; None closes the form."""
        if name is not None and name == self.name:
            return
        self._leave()
        config = self._config()
        part = self._kind.find(config, name) if config is not None and name is not None else None
        if part is None or name is None:
            self._set(None, None, None)
            return
        kept = self._unfinished.pop(name, None)
        self._set(name, part, kept.fields if kept else self._kind.fields_of(part))
        if kept:
            self.problems, self.dirty = kept.problems, True
        self.shown.emit()

    def start_draft(self, fields: Fields, *, fresh: bool = False) -> None:
        """Show a new part, not in the configuration yet; a draft that was left comes back unless ``fresh``."""
        self._leave()
        kept, self._draft = self._draft, None
        self._set(None, None, fields if fresh or kept is None else kept)
        self.dirty = True
        self.shown.emit()

    def edit(self, fields: Fields, *, hold: bool = False) -> None:
        """Take what was typed. ``hold``: judge it, but act only at ``finish`` (names are typed letter by letter)."""
        if self.fields is None or fields == self.fields:
            return
        self.fields, self.dirty, self._held = fields, True, hold
        self._timer.start()
        self.judged.emit()

    def finish(self) -> None:
        """Act now: the field was left or Enter pressed."""
        self._held = False
        if self.dirty and not self.is_draft:
            self._on_rest()

    def discard(self) -> None:
        """Forget what was typed: back to what is in force, or no draft."""
        self._timer.stop()
        part, name = self._part, self.name
        self._draft = None
        self._set(name, part, self._kind.fields_of(part) if part is not None else None)
        self.shown.emit()

    def add_draft(self) -> None:
        """Put the draft into the configuration, or show what is wrong with it."""
        self._timer.stop()
        if self.is_draft:
            self._act()

    def sync(self) -> None:
        """A snapshot came: follow changes made elsewhere, unless the form holds edits of its own."""
        config = self._config()
        if self.name is None or config is None:
            return
        part = self._kind.find(config, self.name)
        if part == self._part:
            return
        if part is None and self.dirty:
            self.name = self._part = None  # deleted elsewhere: what was typed becomes a draft
            self.shown.emit()
            return
        if part is None:
            self._set(None, None, None)
            return
        self._part = part
        if not self.dirty:
            self._set(self.name, part, self._kind.fields_of(part))
            self.shown.emit()

    def forget(self, name: str) -> None:
        """A part was deleted: its unfinished edits go too."""
        self._unfinished.pop(name, None)
        if self.name == name:
            self._timer.stop()
            self._set(None, None, None)

    def _set(self, name: str | None, part: Any, fields: Fields | None) -> None:
        changed = fields is None and self.fields is not None
        self.name, self._part, self.fields = name, part, fields
        self.problems, self.dirty, self._held = {}, False, False
        if changed:
            self.shown.emit()

    def _leave(self) -> None:
        """Act on what rests, and keep what is unfinished for later."""
        rests = self._timer.isActive()
        self._timer.stop()
        if rests and not self.is_draft:
            self._act()
        if not self.dirty or self.fields is None:
            return
        if self.is_draft:
            self._draft = self.fields
        elif self.name is not None and self.problems:
            self._unfinished[self.name] = _Unfinished(self.fields, self.problems)

    def _on_rest(self) -> None:
        self._timer.stop()
        if self.is_draft or self._held:
            self._judge()
        else:
            self._act()

    def _judge(self) -> Any:
        config = self._config()
        if self.fields is None or config is None:
            return None
        part, problems = self._kind.parse(self.fields, config, self.name)
        self.problems = self._kind.explain(problems, self.fields) if part is None else {}
        self.judged.emit()
        return part

    def _act(self) -> None:
        part, before, replacing = self._judge(), self._config(), self.name
        if part is None or before is None:
            return
        if part == self._part:
            self.dirty = False
            self.judged.emit()
            return
        try:
            after = self._kind.put(before, part, replacing)
        except LayaError as error:
            self._refuse(error, before, replacing)
            return
        self.name, self._part, self.dirty = part.name, part, False
        if replacing is None:
            self._draft = None
        self._apply(
            after,
            lambda _none: self._on_applied(before, after, part.name, was_draft=replacing is None),
            lambda error: self._on_refused(error, before, part, replacing),
        )
        self.judged.emit()

    def _on_applied(self, before: NodeConfig, after: NodeConfig, name: str, *, was_draft: bool) -> None:
        self.applied.emit(before, after, name)
        if was_draft and self.name == name:
            self.shown.emit()

    def _on_refused(self, error: LayaError, before: NodeConfig, part: Any, replacing: str | None) -> None:
        """The node said no: what was typed is an edit again, with the node's reasons under the fields."""
        if self._part is part:
            self.name = replacing
            self._part = self._kind.find(before, replacing) if replacing is not None else None
            self._refuse(error, before, replacing)
        elif self.name != part.name and replacing is not None:
            self._unfinished[replacing] = _Unfinished(self._kind.fields_of(part), {None: str(error)})
            self.judged.emit()

    def _refuse(self, error: LayaError, before: NodeConfig, replacing: str | None) -> None:
        self.dirty = True
        problems = [Problem(str(error))]
        if isinstance(error, ConfigError):
            names = [p.name for p in getattr(before, self._kind.section)]
            place = names.index(replacing) if replacing in names else len(names)
            problems = [self._relative(p, place) for p in error.problems]
        if self.fields is not None:
            self.problems = self._kind.explain(problems, self.fields)
        self.judged.emit()

    def _relative(self, problem: Problem, place: int) -> Problem:
        """Our part's problem with its location relative to it; another part's keeps its whole place in words."""
        if problem.loc[:2] == (self._kind.section, place):
            return Problem(problem.message, problem.loc[2:])
        return Problem(f"{problem.key}: {problem.message}" if problem.key else problem.message)
