"""The form of one route. Qt main thread; fields in, fields out. What they mean is ``route_fields``'s business."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from laya_desktop.gui.qtmodels.route_fields import REGEX_COST, RouteFields
from laya_desktop.gui.views.inputs import Choice, PairsInput, Switch, TextInput, connect_all
from laya_desktop.gui.views.widgets import FieldRow

_KINDS = (("prefix", "Prefix"), ("path", "Exact path"), ("regex", "Regex"))
_PATH_TIPS = {
    "prefix": "This path and everything below it. It is stripped; what follows names the API.",
    "path": "This path and no other.",
    "regex": "RE2 expression for the whole path.",
}
_PRIORITIES = (("interactive", "interactive"), ("normal", "normal"), ("batch", "batch"))


class RouteForm(QWidget):
    """Editors for ``RouteFields``; emits what was typed, judges nothing."""

    edited = Signal(object, bool)
    """RouteFields, and True where the change should wait until the field is left (the name)."""
    finished = Signal()
    """A text field was left, or Enter pressed."""

    def __init__(self) -> None:
        super().__init__()
        self.name = TextInput("a unique name")
        self.kind = Choice(_KINDS)
        self.path = TextInput("/v1/…", mono=True)
        self.use_regex = Switch("accept what it costs")
        self.methods = TextInput("any, or e.g. GET, POST")
        self.host = TextInput("any", mono=True)
        self.headers = PairsInput("condition", "X-Header", "any value")
        self.model = TextInput("any")
        self.target = Choice()
        self.fallback = Choice()
        self.priority = Choice(_PRIORITIES)
        self.timeout = TextInput("300s")
        self.enabled = Switch("takes requests")
        self.rows = {
            "name": FieldRow("Name", self.name),
            "kind": FieldRow("Match", self.kind),
            "path": FieldRow("Path", self.path),
            "use_regex": FieldRow("Use regex", self.use_regex, hint=REGEX_COST),
            "methods": FieldRow("Methods", self.methods),
            "host": FieldRow("Host", self.host),
            "headers": FieldRow("Headers", self.headers),
            "model": FieldRow("Model id", self.model),
            "target": FieldRow("Target", self.target),
            "fallback": FieldRow("Fallback", self.fallback),
            "priority": FieldRow("Priority", self.priority),
            "timeout": FieldRow("Timeout", self.timeout),
            "enabled": FieldRow("Enabled", self.enabled),
        }
        self.model.setToolTip("Only requests whose body names this model.")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(6)
        for line in self.rows.values():
            layout.addWidget(line)
        self._kept = RouteFields()
        self._editors = {key: getattr(self, key) for key in self.rows}
        connect_all((e for key, e in self._editors.items() if key != "name"), lambda: self._tell(False))
        self.name.edited.connect(lambda: self._tell(True))
        for editor in self._editors.values():
            if isinstance(editor, TextInput):
                editor.editingFinished.connect(self.finished)
        self._show_kind()

    def fields(self) -> RouteFields:
        """What the form holds."""
        return replace(self._kept, **{key: editor.value() for key, editor in self._editors.items()})

    def set_fields(self, fields: RouteFields) -> None:
        """Show these values; nothing is emitted."""
        self._kept = fields
        for key, editor in self._editors.items():
            editor.set_value(getattr(fields, key))
        self._show_kind()

    def set_targets(self, models: Iterable[str], upstreams: Iterable[str]) -> None:
        """Offer the models, then the upstreams marked with ↗."""
        items = [*((m, m) for m in models), *((u, f"{u} ↗") for u in upstreams)]
        self.target.set_items(items)
        self.fallback.set_items([("", "none"), *items])

    def set_problems(self, problems: dict[str | None, str]) -> None:
        """Show each problem under its field."""
        for key, line in self.rows.items():
            line.set_error(problems.get(key))
        self.headers.set_invalid("headers" in problems)

    def _tell(self, hold: bool) -> None:
        self._show_kind()
        self.edited.emit(self.fields(), hold)

    def _show_kind(self) -> None:
        kind = self.kind.value()
        self.rows["use_regex"].setVisible(kind == "regex")
        self.rows["path"].caption.setText("Regex" if kind == "regex" else "Path")
        self.path.setToolTip(_PATH_TIPS.get(kind, ""))
        self.path.setPlaceholderText("/u/(?P<id>[0-9]+)/chat" if kind == "regex" else "/v1/…")
