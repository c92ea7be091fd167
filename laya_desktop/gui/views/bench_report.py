"""What the Benchmark page shows: recommendation, charts, figures; one result or several compared. Qt main thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import QButtonGroup, QGridLayout, QHeaderView, QSizePolicy, QVBoxLayout, QWidget

from laya_desktop.bench import advice
from laya_desktop.bench.advice import Finding
from laya_desktop.bench.compare import levels as levels_of
from laya_desktop.bench.results import BenchResult, Scenario, TuneResult
from laya_desktop.gui import theme
from laya_desktop.gui.i18n import tr
from laya_desktop.gui.qtmodels import bench_charts
from laya_desktop.gui.qtmodels.bench_charts import Figures
from laya_desktop.gui.qtmodels.figures_table import FiguresTable
from laya_desktop.gui.qtmodels.row_diff import TONE_ROLE
from laya_desktop.gui.views.cells import ROW_HEIGHT, Table, TextDelegate
from laya_desktop.gui.views.widgets import (
    Card,
    ElidedLabel,
    IconButton,
    button,
    column,
    label,
    row,
    scrolled,
    set_property,
)

if TYPE_CHECKING:
    from laya_desktop.gui.views.sweep_plot import SweepPlot

_LINES_MOST, _PLOTS = 7, 4
_MARK = {True: "▲ ", False: "• "}


class FiguresView(Table):
    """A table as tall as its rows; wide ones are scrolled sideways."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.figures = FiguresTable()
        self.setModel(self.figures)
        self.setItemDelegate(TextDelegate(lambda index: index.data(TONE_ROLE), self))
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)

    def show_figures(self, figures: Figures, names: int = 0) -> None:
        """Show others."""
        if figures == self.figures.figures:
            return
        self.figures.set_figures(figures, names)
        header = self.horizontalHeader()
        last = len(figures.titles) - 1
        for place in range(last + 1):
            header.setSectionResizeMode(place, QHeaderView.ResizeMode.ResizeToContents)
        if last >= 0 and (names or not figures.titles[last]):
            header.setSectionResizeMode(last, QHeaderView.ResizeMode.Stretch)
        self.setFixedHeight(
            header.sizeHint().height()
            + ROW_HEIGHT * len(figures.rows)
            + (14 if self.horizontalScrollBarPolicy() == Qt.ScrollBarPolicy.ScrollBarAsNeeded else 2)
        )
        self.setVisible(bool(figures.rows))


class BenchReport(QWidget):
    """Shows ``set_results`` or ``set_tune``."""

    export_wanted = Signal()
    delete_wanted = Signal()
    apply_wanted = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._results: tuple[BenchResult, ...] = ()
        self._scenario: Scenario | None = None
        self.title = ElidedLabel("", "heading")
        self.title.setFixedHeight(theme.CONTROL_HEIGHT)  # the buttons beside it come and go
        self.facts = ElidedLabel("", "hint")
        self.export_button = button(tr("Export…"), icon="export", on_click=self.export_wanted.emit)
        self.delete_button = button(tr("Delete"), icon="trash", on_click=self.delete_wanted.emit)
        self.apply_button = button(tr("Apply"), "primary", "check", on_click=self.apply_wanted.emit)
        self.advice = Card(tr("Recommendation for this machine"))
        self.lines = [label(wrap=True) for _ in range(_LINES_MOST)]
        for line in self.lines:
            self.advice.body.addWidget(line)
        self.advice.body.addLayout(row(self.apply_button, None))
        self._segments = QButtonGroup(self)
        self.scenario_buttons: dict[Scenario, IconButton] = {}
        choices = row(spacing=theme.SPACE_1)
        for number, scenario in enumerate(Scenario):
            made = button(bench_charts.scenario_name(scenario), "segment")
            self._segments.addButton(made, number)
            self.scenario_buttons[scenario] = made
            choices.addWidget(made)
        choices.addStretch(1)
        self._segments.idClicked.connect(lambda number: self._choose(list(Scenario)[number]))
        self.plots: list[SweepPlot] = []
        self.charts = QWidget()
        self._grid = QGridLayout(self.charts)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setSpacing(theme.SPACE_3)
        self.table = FiguresView(tr("Figures"))
        self.table_card = Card(padding=0, spacing=0)
        self.table_card.body.setContentsMargins(1, 1, 1, 1)
        self.table_card.body.addWidget(self.table)
        self.choices = QWidget()
        self.choices.setLayout(choices)
        content = QWidget()
        body = column(self.advice, self.choices, self.charts, self.table_card, None, spacing=theme.SPACE_3)
        content.setLayout(body)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.setSpacing(theme.SPACE_2)
        head = row(self.title, self.export_button, self.delete_button)
        head.setStretch(0, 1)
        whole.addLayout(head)
        whole.addWidget(self.facts)
        whole.addWidget(scrolled(content), 1)

    @property
    def scenario(self) -> Scenario | None:
        """What the charts show."""
        return self._scenario

    def set_results(self, results: Sequence[BenchResult], *, running: bool = False) -> None:
        """Show one result, or several side by side."""
        self._results = tuple(results)
        several = len(self._results) > 1
        first = self._results[0]
        self.title.set_text(
            tr("{n} results compared", n=len(results))
            if several
            else f"{bench_charts.what(first)}  ·  {bench_charts.when(first)}"
        )
        letters = [
            f"{bench_charts.LETTERS[i]}: {bench_charts.what(r)}, {bench_charts.when(r)}" for i, r in enumerate(results)
        ]
        self.facts.set_text("   ".join(letters) if several else bench_charts.facts(first))
        self.export_button.setVisible(not running)
        self.delete_button.setVisible(not running)
        self.apply_button.hide()
        self._say(() if several or running else advice.findings(first))
        offered = bench_charts.scenarios(self._results)
        for scenario, made in self.scenario_buttons.items():
            made.setVisible(scenario in offered)
        self.choices.setVisible(len(offered) > 1)
        if self._scenario not in offered or running:
            self._scenario = offered[-1] if running and offered else offered[0] if offered else None
        self._show_scenario()

    def set_tune(self, result: TuneResult, *, running: bool = False) -> None:
        """Show what Tune has measured."""
        self._results, self._scenario = (), None
        self.title.set_text(tr("Tune  ·  {model}, {n} at once", model=result.model, n=result.concurrency))
        self.facts.set_text(tr("Every setting was loaded on a node of its own and asked over HTTP."))
        for widget in (self.export_button, self.delete_button, self.choices, self.charts):
            widget.hide()
        self._say(() if running else advice.tune_findings(result))
        self.apply_button.setVisible(not running and result.best is not None)
        self.table.show_figures(bench_charts.tune_figures(result))
        self.table_card.setVisible(bool(result.trials))

    def _choose(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._show_scenario()

    def _show_scenario(self) -> None:
        scenario = self._scenario
        levels = levels_of(self._results, scenario) if scenario else ()
        self.charts.setVisible(bool(levels))
        self.table_card.setVisible(bool(levels))
        if scenario is None or not levels:
            return
        self.scenario_buttons[scenario].setChecked(True)
        self._draw()
        if len(self.plots) < _PLOTS:
            QTimer.singleShot(0, self, self._add_plot)
        self.table.show_figures(bench_charts.figures(self._results, scenario), 2 if len(self._results) > 1 else 0)

    def _draw(self) -> None:
        if self._scenario is None:
            return
        levels = levels_of(self._results, self._scenario)
        charts = bench_charts.charts(self._results, self._scenario)
        for plot, chart in zip(self.plots, charts, strict=False):
            plot.set_chart(chart, levels)

    def _add_plot(self) -> None:
        """One plot a turn of the event loop: four at once would hold the window up for a tenth of a second.

        At the first result only, because the plots' library takes half a second to import.
        """
        from laya_desktop.gui.views.sweep_plot import SweepPlot

        place = len(self.plots)
        if place >= _PLOTS:
            return
        plot = SweepPlot()
        plot.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self._grid.addWidget(plot, place // 2, place % 2)
        self._grid.setColumnStretch(place % 2, 1)
        self.plots.append(plot)
        self._draw()
        QTimer.singleShot(0, self, self._add_plot)

    def _say(self, findings: Sequence[Finding]) -> None:
        self.advice.setVisible(bool(findings))
        for i, line in enumerate(self.lines):
            finding = findings[i] if i < len(findings) else None
            line.setVisible(finding is not None)
            if finding is not None:
                line.setText(_MARK[finding.warning] + tr(finding.text, **finding.values))
                set_property(line, "tone", "warn" if finding.warning else "")

    @property
    def said(self) -> tuple[str, ...]:
        """The recommendation's lines that are shown."""
        return tuple(line.text() for line in self.lines if not line.isHidden()) if not self.advice.isHidden() else ()
