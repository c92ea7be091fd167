"""The Benchmark page: measure this node, find a model's best settings, keep and compare results. Qt main thread.

The load comes from a process of its own, over HTTP like anyone's. Tune works on nodes of its own; what it recommends
is applied through the configuration like every other edit.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QStackedWidget, QWidget

from laya_desktop.bench import run, store
from laya_desktop.bench.jobs import Measured, Progress, RunJob
from laya_desktop.bench.results import BenchResult, Series, Trial, TuneResult
from laya_desktop.bench.store import ResultStore
from laya_desktop.bench.tune import choose
from laya_desktop.errors import LayaError
from laya_desktop.gui import theme
from laya_desktop.gui.bridge import NodeBridge
from laya_desktop.gui.i18n import tr
from laya_desktop.gui.messages import Dialogs
from laya_desktop.gui.qtmodels.bench_runner import BenchRunner
from laya_desktop.gui.views.bench_form import BenchForm
from laya_desktop.gui.views.bench_report import BenchReport
from laya_desktop.gui.views.saved_results import SavedResults
from laya_desktop.gui.views.tune_form import TuneForm
from laya_desktop.gui.views.widgets import (
    BarPart,
    EmptyState,
    HBar,
    button,
    column,
    label,
    row,
    scrolled,
    set_property,
)
from laya_desktop.state.snapshot import NodeSnapshot

_SIDE_WIDTH = 300
_FILES = "JSON (*.json);;CSV (*.csv)"


class BenchmarkPage(QWidget):
    """Form and kept results on the left; what was measured on the right."""

    def __init__(self, bridge: NodeBridge, dialogs: Dialogs) -> None:
        super().__init__()
        self.setObjectName("page")
        self._bridge, self._dialogs = bridge, dialogs
        self._store = ResultStore()
        self._results: tuple[BenchResult, ...] | None = None
        self._live: BenchResult | None = None
        self._job: RunJob | None = None
        self._tuned: TuneResult | None = None
        self.runner = BenchRunner(self)
        self.form, self.tune_form = BenchForm(), TuneForm()
        self.measure_tab = button(tr("Measure"), "segment", on_click=lambda: self._show_form(0))
        self.tune_tab = button(tr("Tune"), "segment", on_click=lambda: self._show_form(1))
        self.run_button = button(tr("Run"), "primary", "play", on_click=self.start)
        self.cancel_button = button(tr("Cancel"), "secondary", "stop", on_click=self.cancel)
        self.bar, self.stage = HBar(), label(role="hint", wrap=True)
        self.hint = label(role="secondary", wrap=True)
        self.saved = SavedResults()
        self.report = BenchReport()
        self.empty = EmptyState(
            tr("Nothing measured yet"),
            tr(
                "Run measures how fast this node routes, and how fast its models answer, with more and more requests "
                "at once. Tune finds the settings that give the most tokens per second on this machine."
            ),
            tr("Run the benchmark"),
            "benchmark",
        )
        self._build()
        self._connect()
        self.measure_tab.setChecked(True)
        self._show_busy()
        self.set_snapshot(bridge.snapshot)

    def _build(self) -> None:
        group = QButtonGroup(self)
        group.addButton(self.measure_tab)
        group.addButton(self.tune_tab)
        self.forms = QStackedWidget()
        for form in (self.form, self.tune_form):
            holder = QWidget()
            holder.setLayout(column(form, None, spacing=0))
            self.forms.addWidget(holder)
        side = QWidget()
        side.setLayout(column(self.forms, self.saved, None, spacing=theme.SPACE_3))
        area = scrolled(side)
        controls = column(self.hint, self.bar, self.stage, spacing=theme.SPACE_1)
        controls.addLayout(row(self.run_button, self.cancel_button))
        left = QWidget()
        left.setFixedWidth(_SIDE_WIDTH)
        whole = column(spacing=theme.SPACE_2)
        whole.addLayout(row(self.measure_tab, self.tune_tab, None, spacing=theme.SPACE_1))
        whole.addWidget(area, 1)
        whole.addLayout(controls)
        left.setLayout(whole)
        self.right = QStackedWidget()
        self.right.addWidget(self.empty)
        self.right.addWidget(self.report)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(*(theme.SPACE_4,) * 4)
        layout.setSpacing(theme.SPACE_3)
        layout.addWidget(left)
        layout.addWidget(self.right, 1)

    def _connect(self) -> None:
        self.form.edited.connect(self._show_busy)
        self.tune_form.edited.connect(self._show_busy)
        self.empty.clicked.connect(self._run_first)
        self.runner.progressed.connect(self._on_progress)
        self.runner.measured.connect(self._on_measured)
        self.runner.tried.connect(self._on_tried)
        self.runner.finished.connect(self._on_finished)
        self.runner.tuned.connect(self._on_tuned)
        self.runner.failed.connect(self._on_failed)
        self.runner.ended.connect(self._on_ended)
        self.saved.chosen.connect(self._on_selected)
        self.report.export_wanted.connect(self.export)
        self.report.delete_wanted.connect(self.delete)
        self.report.apply_wanted.connect(self.apply)

    def set_snapshot(self, snapshot: NodeSnapshot) -> None:
        """Offer what the configuration in force offers."""
        self.form.set_config(snapshot.config, snapshot.config_status.path)
        self.tune_form.set_snapshot(snapshot)
        self._show_busy()

    def showEvent(self, event: QShowEvent) -> None:
        """Read the kept results the first time."""
        super().showEvent(event)
        if self._results is None:
            self._keep(self._store.load())

    @property
    def tuning(self) -> bool:
        """The Tune form is shown."""
        return self.forms.currentIndex() == 1

    def start(self) -> None:
        """Run what the form says; what is missing is said beside the button."""
        self._problem("")
        problem = (self.tune_form if self.tuning else self.form).problem
        url = self._bridge.snapshot.node.url
        if problem is None and not self.tuning and url is None:
            problem = tr("The node is stopped. Press Start in the header, then run again.")
        if problem is not None or self.runner.busy:
            self._problem(problem or "")
            return
        try:
            if self.tuning:
                job = self.tune_form.job()
                self._tuned = TuneResult(job.model, job.concurrency, (), None)
                self._live = None
                self.runner.start(job)
            else:
                self._job = self.form.job(url or "", os.getpid())
                self._live = run.begin(self._job)
                self.runner.start(self._job)
        except LayaError as fault:
            self._problem(str(fault))
            return
        self.stage.setText(tr("Starting …"))
        self.bar.set_parts(())
        self._show_busy()

    def cancel(self) -> None:
        """Stop at once."""
        self.runner.cancel()
        self.stage.setText(tr("Cancelling …"))
        self._show_busy()

    def _run_first(self) -> None:
        self.measure_tab.click()
        self.start()

    def _show_form(self, number: int) -> None:
        self.forms.setCurrentIndex(number)
        self._problem("")
        self._show_busy()

    def _show_busy(self) -> None:
        busy = self.runner.busy
        problem = (self.tune_form if self.tuning else self.form).problem
        self.run_button.setText(tr("Tune") if self.tuning else tr("Run"))
        self.run_button.setEnabled(not busy and problem is None)
        self.run_button.setToolTip(problem or "")
        self.cancel_button.setEnabled(busy and not self.runner.cancelled)
        self.bar.setVisible(busy)
        self.stage.setVisible(busy)
        for widget in (self.form, self.tune_form, self.measure_tab, self.tune_tab):
            widget.setEnabled(not busy)
        if not busy and self.tuning and problem is not None:
            self._problem(problem)
        elif not busy and self.hint.property("standing") and problem is None:
            self._problem("")
        self.hint.setProperty("standing", self.tuning and problem is not None)

    def _problem(self, text: str, tone: str = "warn") -> None:
        self.hint.setText(text)
        self.hint.setVisible(bool(text))
        set_property(self.hint, "tone", tone)

    def _on_progress(self, progress: Progress) -> None:
        slots, cross, threads = progress.level.partition("×")
        if progress.stage == "loading":
            text = tr("Loading {model} …", model=progress.target)
        elif cross:
            text = tr("batch_size {slots}, num_worker {threads}", slots=slots, threads=threads)
        else:
            text = tr("{target}, {n} at once", target=progress.target, n=progress.level)
        self.stage.setText(tr("{n} of {total}: {what}", n=int(progress.done) + 1, total=progress.total, what=text))
        self.bar.set_parts((BarPart(progress.done / max(progress.total, 1), "accent", tr("Done")),))

    def _on_measured(self, measured: Measured) -> None:
        live = self._live
        if live is None or self._job is None:
            return
        series = live.of(measured.scenario)
        if series is None:
            part = next(p for p in self._job.parts if p.scenario is measured.scenario)
            series = Series(part.scenario, part.target, settings=part.settings)
            live = replace(live, series=(*live.series, series))
        grown = replace(series, points=(*series.points, measured.point))
        self._live = replace(live, series=tuple(grown if s is series else s for s in live.series))
        self.report.set_results((self._live,), running=True)
        self.right.setCurrentWidget(self.report)

    def _on_tried(self, trial: Trial) -> None:
        if self._tuned is not None:
            trials = (*self._tuned.trials, trial)
            best, gain = choose(trials)
            self._tuned = replace(self._tuned, trials=trials, best=best, gain=gain)
            self.saved.select(())
            self.report.set_tune(self._tuned, running=True)
            self.right.setCurrentWidget(self.report)

    def _on_finished(self, result: BenchResult) -> None:
        self._live = None
        try:
            self._store.save(result)
        except LayaError as fault:
            self._problem(str(fault))
        self._keep((result, *(r for r in self._results or () if r.result_id != result.result_id)), show=result)

    def _on_tuned(self, result: TuneResult) -> None:
        self._tuned = result
        self.saved.select(())
        self.report.set_tune(result)
        self.right.setCurrentWidget(self.report)

    def _on_failed(self, text: str) -> None:
        self._problem(text, "critical")

    def _on_ended(self) -> None:
        if self.runner.cancelled:
            self._live = None
            self._problem(tr("Cancelled. Nothing was saved."), "")
            if self._tuned is not None and self._tuned.trials and self.tuning:
                self.report.set_tune(replace(self._tuned, complete=False))
            else:
                self._on_selected()
        self._show_busy()

    def _keep(self, results: Sequence[BenchResult], show: BenchResult | None = None) -> None:
        """List the results and show one of them: the newest, unless told otherwise."""
        self._results = tuple(results[: store.KEPT])
        self.saved.set_results(self._results)
        chosen = show or (self._results[0] if self._results else None)
        if chosen is None:
            self.right.setCurrentWidget(self.empty)
        else:
            self.saved.select((chosen.result_id,))
            self._on_selected()

    def _on_selected(self) -> None:
        chosen = self.saved.selected
        if chosen and self._live is None:
            self.report.set_results(chosen)
            self.right.setCurrentWidget(self.report)

    def export(self) -> None:
        """Write the chosen results to a file."""
        chosen = self.saved.selected
        name = f"laya-benchmark-{chosen[-1].result_id}.json" if chosen else ""
        path = self._dialogs.save_path(self, tr("Export results"), str(Path.home() / name), _FILES) if chosen else None
        if path is not None:
            try:
                written = store.export(chosen, path)
            except LayaError as fault:
                self._problem(str(fault), "critical")
            else:
                self._problem(tr("Exported to {path}.", path=written), "")

    def delete(self) -> None:
        """Forget the chosen results."""
        gone = {r.result_id for r in self.saved.selected}
        for result_id in gone:
            self._store.delete(result_id)
        self._keep([r for r in self._results or () if r.result_id not in gone])

    def apply(self) -> None:
        """Put Tune's recommendation into the configuration: in force at once, unsaved until saved."""
        result, config = self._tuned, self._bridge.config
        model = config.model(result.model) if config is not None and result is not None else None
        if result is None or result.best is None or config is None or model is None:
            return
        best = {"batch_size": result.best.batch_size, "num_worker": result.best.num_worker}
        try:
            edited = config.with_model(model.model_copy(update=best), replacing=model.name)
        except LayaError as fault:
            self._problem(str(fault), "critical")
            return
        loaded = (found := self._bridge.snapshot.model(model.name)) is not None and found.pid is not None
        done = tr("Applied; it acts when {model} is loaded again.", model=model.name) if loaded else tr("Applied.")
        self._bridge.apply_config(
            edited, done=self._tell(done), failed=lambda fault: self._problem(str(fault), "critical")
        )
        self.report.apply_button.setEnabled(False)

    def _tell(self, text: str) -> Callable[[object], None]:
        return lambda _result: self._problem(text, "calm")
