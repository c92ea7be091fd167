"""The list of kept results: choose one to look at it, two or more to compare them. Qt main thread; reads no files."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QItemSelectionModel, Qt, Signal
from PySide6.QtWidgets import QAbstractItemView

from laya_desktop.bench.results import BenchResult
from laya_desktop.gui.i18n import tr
from laya_desktop.gui.qtmodels import bench_charts
from laya_desktop.gui.qtmodels.bench_charts import RESULTS_MOST, Cell, Figures
from laya_desktop.gui.views.bench_report import FiguresView
from laya_desktop.gui.views.widgets import Card, label


class SavedResults(Card):
    """A card with the results, newest first; hidden while there are none."""

    chosen = Signal()
    """Others are selected."""

    def __init__(self) -> None:
        super().__init__(tr("Saved results"))
        self._results: tuple[BenchResult, ...] = ()
        self.table = FiguresView(tr("Saved results"))
        self.table.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.table.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.body.addWidget(label(tr("Choose two or more (Ctrl) to compare them."), "hint", wrap=True))
        self.body.addWidget(self.table)
        self.table.selectionModel().selectionChanged.connect(lambda *_: self.chosen.emit())

    @property
    def results(self) -> tuple[BenchResult, ...]:
        """All of them."""
        return self._results

    @property
    def selected(self) -> tuple[BenchResult, ...]:
        """The chosen ones, oldest first, so that the newer ones are compared with it."""
        places = sorted({i.row() for i in self.table.selectionModel().selectedRows()}, reverse=True)
        return tuple(self._results[p] for p in places if p < len(self._results))[:RESULTS_MOST]

    def set_results(self, results: Sequence[BenchResult]) -> None:
        """List these, newest first."""
        self._results = tuple(results)
        rows = tuple((Cell(bench_charts.when(r)), Cell(bench_charts.what(r))) for r in self._results)
        self.table.show_figures(Figures((tr("When"), tr("What")), rows), 2)
        self.setVisible(bool(rows))

    def select(self, result_ids: Sequence[str]) -> None:
        """Choose results by id; none: clear the choice."""
        chooser = self.table.selectionModel()
        chooser.clearSelection()
        flags = QItemSelectionModel.SelectionFlag.Select | QItemSelectionModel.SelectionFlag.Rows
        for place, result in enumerate(self._results):
            if result.result_id in result_ids:
                chooser.select(self.table.figures.index(place, 0), flags)
