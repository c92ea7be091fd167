"""What to measure: scenarios, models, requests at once, lengths. Qt main thread; makes a job and sends nothing."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QLineEdit, QSpinBox

from laya_desktop.bench import choice, jobs
from laya_desktop.bench.jobs import LEVELS_MOST, RunJob
from laya_desktop.bench.results import Scenario
from laya_desktop.config.schema import NodeConfig
from laya_desktop.errors import LayaError
from laya_desktop.gui import theme
from laya_desktop.gui.i18n import tr
from laya_desktop.gui.views.inputs import Choice, Switch, TextInput
from laya_desktop.gui.views.widgets import Card, column, label, row, set_property


def spin(least: int, most: int, value: int, name: str) -> QSpinBox:
    """A number."""
    result = QSpinBox()
    result.setRange(least, most)
    result.setValue(value)
    result.setAccessibleName(name)
    result.lineEdit().setTextMargins(theme.SPACE_2, 0, 0, 0)
    return result


class BenchForm(Card):
    """The form of a run. ``problem`` says what keeps it from being run."""

    edited = Signal()

    def __init__(self) -> None:
        super().__init__(tr("What to measure"))
        self._known: tuple[NodeConfig | None, str | None] = (None, None)
        self._folder: Path | None = None
        self._config: NodeConfig | None = None
        self.routing = Switch(tr("Pure routing"))
        self.small = Switch(tr("Routing and a small model"))
        self.large = Switch(tr("Routing and a larger model"))
        self.small_model, self.large_model = Choice(), Choice()
        self.levels = TextInput("1, 2, 4, 8")
        self.levels.set_value("1, 2, 4, 8")
        self.levels_error = label(role="error", wrap=True)
        self.levels_error.hide()
        self.prompt = spin(1, jobs.TOKENS_MOST, 64, tr("Prompt tokens"))
        self.answer = spin(1, jobs.TOKENS_MOST, 64, tr("Answer tokens"))
        self.requests = spin(1, jobs.REQUESTS_MOST, 32, tr("Requests to a model, each level"))
        self.seconds = spin(1, 3600, 20, tr("Seconds for each level, at most"))
        self.key = TextInput(tr("the node asks for one"))
        self.key.setEchoMode(QLineEdit.EchoMode.Password)
        self.key_label = label(tr("API key"), "hint")
        for widget, name in (
            (self.small_model, tr("Small model")),
            (self.large_model, tr("Larger model")),
            (self.levels, tr("Requests at once")),
            (self.key, tr("API key")),
        ):
            widget.setAccessibleName(name)
        self.routing.set_value(True)
        self.small.set_value(True)
        self._lay_out()
        for editor in (self.routing, self.small, self.large, self.small_model, self.large_model, self.levels, self.key):
            editor.edited.connect(self._on_edited)

    def _lay_out(self) -> None:
        for switch, model in ((self.routing, None), (self.small, self.small_model), (self.large, self.large_model)):
            self.body.addWidget(switch)
            if model is not None:
                self.body.addWidget(model)
        self.body.addWidget(label(tr("Requests at once, level by level"), "hint"))
        self.body.addWidget(self.levels)
        self.body.addWidget(self.levels_error)
        for pair in (
            ((tr("Prompt tokens"), self.prompt), (tr("Answer tokens"), self.answer)),
            ((tr("Requests a level"), self.requests), (tr("Seconds, at most"), self.seconds)),
        ):
            line = row(spacing=theme.SPACE_2)
            for text, editor in pair:
                line.addLayout(column(label(text, "hint"), editor, spacing=theme.SPACE_1), 1)
            self.body.addLayout(line)
        self.body.addWidget(self.key_label)
        self.body.addWidget(self.key)

    def set_config(self, config: NodeConfig | None, path: str | None) -> None:
        """Offer the models of the configuration in force."""
        if (config, path) == self._known and self._config is not None:
            return
        self._known, self._config = (config, path), config
        self._folder = Path(path).parent if path else None
        names = choice.by_size(config, self._folder) if config is not None else ()
        for model in (self.small_model, self.large_model):
            model.set_items((n, n) for n in names)
        if self.small_model.value() not in names:
            self.small_model.set_value(names[0] if names else "")
        if self.large_model.value() not in names or self.large_model.value() == self.small_model.value():
            self.large_model.set_value(names[-1] if names else "")
        self.small.setEnabled(bool(names))
        self.large.setEnabled(len(names) > 1)
        self.large.setToolTip("" if len(names) > 1 else tr("Add a second model on the Models page to compare."))
        needs_key = config is not None and bool(config.server.api_keys)
        self.key.setVisible(needs_key)
        self.key_label.setVisible(needs_key)
        self._on_edited()

    @property
    def wanted(self) -> tuple[Scenario, ...]:
        """The scenarios that are chosen and possible."""
        pairs = ((Scenario.ROUTING, self.routing), (Scenario.SMALL, self.small), (Scenario.LARGE, self.large))
        return tuple(s for s, switch in pairs if switch.value() and switch.isEnabledTo(self))

    @property
    def problem(self) -> str | None:
        """Why there is nothing to run."""
        wrong = self._levels_problem()
        return wrong or (None if self.wanted else tr("Choose at least one scenario."))

    def _levels_problem(self) -> str | None:
        try:
            jobs.parse_levels(self.levels.value())
        except LayaError:
            return tr("Write up to {n} numbers from 1 to {most}, e.g. 1, 2, 4, 8.", n=LEVELS_MOST, most=jobs.LEVEL_MOST)
        return None

    def job(self, url: str, pid: int | None) -> RunJob:
        """What the form asks for. Raises LayaError."""
        models = {Scenario.SMALL: self.small_model.value(), Scenario.LARGE: self.large_model.value()}
        return RunJob(
            url=url,
            parts=tuple(choice.part(self._config, s, models.get(s, "")) for s in self.wanted),
            concurrency=jobs.parse_levels(self.levels.value()),
            requests=self.requests.value(),
            seconds=float(self.seconds.value()),
            prompt_tokens=self.prompt.value(),
            max_tokens=self.answer.value(),
            api_key=self.key.value().strip() if self.key.isVisibleTo(self) else "",
            watch_pid=pid,
        )

    def _on_edited(self) -> None:
        self.small_model.setEnabled(self.small.isEnabledTo(self) and self.small.value())
        self.large_model.setEnabled(self.large.isEnabledTo(self) and self.large.value())
        text = self._levels_problem() or ""
        self.levels_error.setText(text)
        self.levels_error.setVisible(bool(text))
        set_property(self.levels, "invalid", bool(text))
        self.edited.emit()
