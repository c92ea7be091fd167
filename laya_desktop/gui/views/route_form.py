"""The form of one route. Qt main thread; fields in, fields out. What they mean is ``route_fields``'s business."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from laya_desktop.gui.i18n import QT_TR_NOOP, tr, translated
from laya_desktop.gui.qtmodels.route_fields import ADVANCED, REGEX_COST, RouteFields, is_advanced
from laya_desktop.gui.views.inputs import Choice, PairsInput, Switch, TextInput, connect_all
from laya_desktop.gui.views.widgets import FieldRow

_KINDS = (("prefix", QT_TR_NOOP("Prefix")), ("path", QT_TR_NOOP("Exact path")), ("regex", QT_TR_NOOP("Regex")))
_PATH_TIPS = {
    "prefix": QT_TR_NOOP("This path and everything below it. It is stripped; what follows names the API."),
    "path": QT_TR_NOOP("This path and no other."),
    "regex": QT_TR_NOOP("RE2 expression for the whole path."),
}
_PRIORITIES = (
    ("interactive", QT_TR_NOOP("interactive")),
    ("normal", QT_TR_NOOP("normal")),
    ("batch", QT_TR_NOOP("batch")),
)


class RouteForm(QWidget):
    """Editors for ``RouteFields``; emits what was typed, judges nothing."""

    edited = Signal(object, bool)
    """RouteFields, and True where the change should wait until the field is left (the name)."""
    finished = Signal()
    """A text field was left, or Enter pressed."""

    def __init__(self) -> None:
        super().__init__()
        self.name = TextInput(tr("a unique name"))
        self.kind = Choice(translated(_KINDS))
        self.path = TextInput("/v1/…", mono=True)
        self.use_regex = Switch(tr("accept what it costs"))
        self.methods = TextInput(tr("any, or e.g. GET, POST"))
        self.host = TextInput(tr("any"), mono=True)
        self.headers = PairsInput(tr("condition"), "X-Header", tr("any value"))
        self.model = TextInput(tr("any"))
        self.target = Choice()
        self.fallback = Choice()
        self.priority = Choice(translated(_PRIORITIES))
        self.timeout = TextInput("300s")
        self.enabled = Switch(tr("takes requests"))
        self.shares = TextInput(tr("e.g. small ×2, large"))
        self.strip_prefix = Switch(tr("taken off"))
        self.rewrite = TextInput(tr("as it is, or e.g. /v1"), mono=True)
        self.response_headers = PairsInput(tr("header"), "Cache-Control", "no-store")
        self.rows = {
            "name": FieldRow(tr("Name"), self.name),
            "kind": FieldRow(tr("Match"), self.kind),
            "path": FieldRow(tr("Path"), self.path),
            "use_regex": FieldRow(tr("Use regex"), self.use_regex, hint=tr(REGEX_COST)),
            "methods": FieldRow(tr("Methods"), self.methods),
            "host": FieldRow(tr("Host"), self.host),
            "headers": FieldRow(tr("Headers"), self.headers),
            "model": FieldRow(tr("Model id"), self.model),
            "target": FieldRow(tr("Target"), self.target),
            "fallback": FieldRow(tr("Fallback"), self.fallback),
            "priority": FieldRow(tr("Priority"), self.priority),
            "timeout": FieldRow(tr("Timeout"), self.timeout),
            "enabled": FieldRow(tr("Enabled"), self.enabled),
            "shares": FieldRow(
                tr("Shared by"), self.shares, hint=tr("Several targets with weights; the least busy one answers.")
            ),
            "strip_prefix": FieldRow(tr("Prefix"), self.strip_prefix),
            "rewrite": FieldRow(tr("In its place"), self.rewrite),
            "response_headers": FieldRow(tr("Answers get"), self.response_headers),
        }
        self.model.setToolTip(tr("Only requests whose body names this model."))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(6)
        self.advanced = Switch(tr("Advanced"))
        self.advanced.toggled.connect(self._show_advanced)
        for key, line in self.rows.items():
            if key == ADVANCED[0]:
                layout.addWidget(self.advanced)
            layout.addWidget(line)
        self._show_advanced(False)
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
        if is_advanced(fields):
            self.advanced.setChecked(True)
        for key, editor in self._editors.items():
            editor.set_value(getattr(fields, key))
        self._show_kind()

    def set_targets(self, models: Iterable[str], upstreams: Iterable[str]) -> None:
        """Offer the models, then the upstreams marked with ↗."""
        items = [*((m, m) for m in models), *((u, f"{u} ↗") for u in upstreams)]
        self.target.set_items(items)
        self.fallback.set_items([("", tr("none")), *items])

    def set_problems(self, problems: dict[str | None, str]) -> None:
        """Show each problem under its field."""
        for key, line in self.rows.items():
            line.set_error(problems.get(key))
        self.headers.set_invalid("headers" in problems)
        self.response_headers.set_invalid("response_headers" in problems)
        if any(key in problems for key in ADVANCED):
            self.advanced.setChecked(True)

    def _show_advanced(self, shown: bool) -> None:
        for key in ADVANCED:
            self.rows[key].setVisible(shown)

    def _tell(self, hold: bool) -> None:
        self._show_kind()
        self.edited.emit(self.fields(), hold)

    def _show_kind(self) -> None:
        kind = self.kind.value()
        self.rows["use_regex"].setVisible(kind == "regex")
        self.target.setEnabled(not self.shares.value().strip())
        self.rows["path"].caption.setText(tr("Regex") if kind == "regex" else tr("Path"))
        self.path.setToolTip(tr(_PATH_TIPS.get(kind, "")))
        self.path.setPlaceholderText("/u/(?P<id>[0-9]+)/chat" if kind == "regex" else "/v1/…")
