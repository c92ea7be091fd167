"""One section of the settings as a form: typed values are checked as the file's, and valid ones act. Qt main thread.

Edits act after a short rest of the keyboard. A wrong value stays where it was typed with its error under it; snapshots
refresh only what nobody is editing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from PySide6.QtCore import QTimer

from laya_desktop.config.parts import check_part
from laya_desktop.config.schema import NodeConfig
from laya_desktop.errors import LayaError
from laya_desktop.gui.bridge import NodeBridge
from laya_desktop.gui.views.inputs import Choice, TextInput
from laya_desktop.gui.views.widgets import Card, FieldRow, label

REST_MS = 400
Section = Literal["server", "guard", "log"]


def _same(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class Field:
    """One setting: its key in the section, its row and editor, and how its value is written and read."""

    key: str
    row: FieldRow
    editor: TextInput | Choice
    write: Callable[[Any], str] = str
    read: Callable[[str], Any] = _same


def write_percent(value: float) -> str:
    """0.9 → ``90 %``."""
    return f"{value * 100:g} %"


def read_percent(text: str) -> Any:
    """``90 %`` or ``90`` → 0.9; anything else is returned as it is, for the schema to refuse."""
    try:
        return float(text.strip().removesuffix("%")) / 100
    except ValueError:
        return text


class SectionForm(Card):
    """A card with the fields of ``server``, ``guard`` or ``log``."""

    def __init__(self, section: Section, title: str, fields: tuple[Field, ...], bridge: NodeBridge) -> None:
        super().__init__(title, spacing=10)
        self.section, self.fields, self._bridge = section, {f.key: f for f in fields}, bridge
        self._failure = label(role="error", wrap=True)
        self._failure.hide()
        self._shown: Any = None
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(REST_MS)
        self._timer.timeout.connect(self.apply)
        for field in fields:
            self.body.addWidget(field.row)
            field.editor.edited.connect(self._on_edited)
            if isinstance(field.editor, TextInput):
                field.editor.returnPressed.connect(self.apply)
        self.body.addWidget(self._failure)
        self.dirty = False

    def show_config(self, config: NodeConfig) -> None:
        """Show the values in force, unless something unfinished is typed here."""
        part = getattr(config, self.section)
        if self.dirty or part == self._shown:
            return
        self._shown = part
        for key, field in self.fields.items():
            value = getattr(part, key)
            field.editor.set_value("" if value is None else field.write(value))
            field.row.set_error(None)

    def _on_edited(self) -> None:
        self.dirty = True
        self._timer.start()

    def value(self, key: str) -> str:
        """What a field shows."""
        return self.fields[key].editor.value()

    def apply(self) -> None:
        """Check what is typed; show every error, or put it in force."""
        self._timer.stop()
        config = self._bridge.config
        if config is None or not self.dirty:
            return
        data = getattr(config, self.section).model_dump()
        data |= {key: field.read(field.editor.value()) for key, field in self.fields.items()}
        part, problems = check_part(self.section, data)
        errors = {str(problem.loc[0]) if problem.loc else "": problem.message for problem in problems}
        for key, field in self.fields.items():
            field.row.set_error(errors.get(key))
        self._fail(" ".join(text for key, text in errors.items() if key not in self.fields))
        if part is None:
            return
        whole = NodeConfig.model_validate(config.model_dump() | {self.section: part.model_dump()})
        if whole == config:
            self.dirty = False
            return
        self._bridge.apply_config(whole, done=self._applied, failed=self._refused)

    def _applied(self, _result: object) -> None:
        if not self._timer.isActive():  # nothing was typed meanwhile
            self.dirty, self._shown = False, None

    def _refused(self, error: LayaError) -> None:
        self._fail(str(error))

    def _fail(self, text: str) -> None:
        self._failure.setText(text)
        self._failure.setVisible(bool(text))

    @property
    def failure(self) -> str:
        """Why the section as a whole was refused; empty when it was not."""
        return self._failure.text()
