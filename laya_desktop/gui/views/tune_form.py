"""Which model to tune, what will happen, and who else is at work. Qt main thread; makes a job and sends nothing."""

from __future__ import annotations

from pathlib import Path

import psutil
from PySide6.QtCore import Signal

from laya_desktop.bench import tune
from laya_desktop.bench.jobs import LEVEL_MOST, TOKENS_MOST, TuneJob
from laya_desktop.config.schema import NodeConfig
from laya_desktop.gui import format as fmt
from laya_desktop.gui import theme
from laya_desktop.gui.i18n import tr
from laya_desktop.gui.views.bench_form import spin
from laya_desktop.gui.views.inputs import Choice, Switch
from laya_desktop.gui.views.widgets import Card, column, label, row
from laya_desktop.state.snapshot import NodeSnapshot

_LOAD_S = 6.0
"""Guess of starting a node, loading, and calibrating the prompt, for the time that is said beforehand."""


class TuneForm(Card):
    """The form of Tune."""

    edited = Signal()

    def __init__(self) -> None:
        super().__init__(tr("Which settings are best here?"))
        self._snapshot: NodeSnapshot | None = None
        self._cores = psutil.cpu_count(logical=False) or psutil.cpu_count() or 1
        self.model = Choice()
        self.model.setAccessibleName(tr("Model"))
        self.at_once = spin(1, LEVEL_MOST, 8, tr("Requests at once"))
        self.seconds = spin(2, 600, 8, tr("Seconds for each setting, at most"))
        self.prompt = spin(1, TOKENS_MOST, 64, tr("Prompt tokens"))
        self.answer = spin(1, TOKENS_MOST, 64, tr("Answer tokens"))
        self.explanation = label(role="hint", wrap=True)
        self.others = label(role="secondary", wrap=True)
        self.anyway = Switch(tr("Measure all the same"))
        self.body.addWidget(label(tr("Model"), "hint"))
        self.body.addWidget(self.model)
        for pair in (
            ((tr("Requests at once"), self.at_once), (tr("Seconds a setting"), self.seconds)),
            ((tr("Prompt tokens"), self.prompt), (tr("Answer tokens"), self.answer)),
        ):
            line = row(spacing=theme.SPACE_2)
            for text, editor in pair:
                line.addLayout(column(label(text, "hint"), editor, spacing=theme.SPACE_1), 1)
            self.body.addLayout(line)
        for widget in (self.explanation, self.others, self.anyway):
            self.body.addWidget(widget)
        for signal in (self.model.edited, self.anyway.edited, self.at_once.valueChanged, self.seconds.valueChanged):
            signal.connect(self._on_edited)

    def set_snapshot(self, snapshot: NodeSnapshot) -> None:
        """Offer the models there are; say which ones are loaded."""
        before, self._snapshot = self._snapshot, snapshot
        config = snapshot.config
        if before is not None and before.config is config and self._loaded(before) == self._loaded(snapshot):
            return
        names = [m.name for m in config.models] if config else []
        self.model.set_items((n, n) for n in names)
        if self.model.value() not in names:
            self.model.set_value(names[0] if names else "")
        self._on_edited()

    @staticmethod
    def _loaded(snapshot: NodeSnapshot) -> tuple[str, ...]:
        return tuple(m.name for m in snapshot.models if m.pid is not None)

    @property
    def problem(self) -> str | None:
        """Why there is nothing to run."""
        if self._snapshot is None or not self.model.value():
            return tr("There is no model. Add one on the Models page.")
        loaded = self._loaded(self._snapshot)
        if loaded and not self.anyway.value():
            return tr("Unload {names} first, or choose to measure all the same.", names=", ".join(loaded))
        return None

    @property
    def settings(self) -> int:
        """How many settings will be tried."""
        config: NodeConfig | None = self._snapshot.config if self._snapshot else None
        model = config.model(self.model.value()) if config else None
        if model is None:
            return 0
        return len(tune.grid(tune.present_setting(model, self._cores), self._cores, self.at_once.value()))

    def job(self) -> TuneJob:
        """What the form asks for. Raises LayaError."""
        assert self._snapshot is not None
        assert self._snapshot.config is not None
        path = self._snapshot.config_status.path
        return tune.job_for(
            self._snapshot.config,
            Path(path).parent if path else None,
            self.model.value(),
            concurrency=self.at_once.value(),
            seconds=float(self.seconds.value()),
            requests=max(4 * self.at_once.value(), 16),
            prompt_tokens=self.prompt.value(),
            max_tokens=self.answer.value(),
        )

    def _on_edited(self) -> None:
        count = self.settings
        about = fmt.seconds((count + 1) * (self.seconds.value() + _LOAD_S))
        self.explanation.setText(
            tr(
                "Loads the model %n time(s), each time with other values of batch_size and num_worker, on a node of "
                "its own; about {time}. Your node and its settings are left alone.",
                None,
                count + 1,
                time=about,
            )
            if count
            else ""
        )
        loaded = self._loaded(self._snapshot) if self._snapshot else ()
        self.others.setText(
            tr("Loaded now: {names}. Their answers would be slower meanwhile, and the figures too low.",
               names=", ".join(loaded))
        )  # fmt: skip
        self.others.setVisible(bool(loaded))
        self.anyway.setVisible(bool(loaded))
        self.edited.emit()
