"""Settings: folders in which models are looked for. Qt main thread; every change acts at once."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from PySide6.QtWidgets import QVBoxLayout, QWidget

from laya_desktop import paths
from laya_desktop.gui.bridge import NodeBridge
from laya_desktop.gui.i18n import tr
from laya_desktop.gui.messages import Dialogs
from laya_desktop.gui.views.widgets import Card, ElidedLabel, button, label, row
from laya_desktop.state.snapshot import NodeSnapshot


class FoldersCard(Card):
    """The folders of the configuration, with a way to add and to take away."""

    def __init__(self, bridge: NodeBridge, dialogs: Dialogs) -> None:
        super().__init__(tr("Model folders"))
        self._bridge, self._dialogs = bridge, dialogs
        self._shown: tuple[Path, ...] | None = None
        hint = tr("“Find models” looks here, and in the folders of LM Studio, Ollama and others. It only reads.")
        self.body.addWidget(label(hint, "hint", wrap=True))
        self._lines = QVBoxLayout()
        self._lines.setSpacing(2)
        self.body.addLayout(self._lines)
        self.none = label(tr("No folder of your own yet."), "secondary")
        self.body.addWidget(self.none)
        self.add = button(tr("Add a folder…"), icon="plus", on_click=self._add)
        self.body.addLayout(row(self.add, None))

    @property
    def folders(self) -> tuple[Path, ...]:
        """What is listed."""
        return self._shown or ()

    def set_snapshot(self, snapshot: NodeSnapshot) -> None:
        """List the folders in force."""
        folders = tuple(snapshot.config.model_folders) if snapshot.config else ()
        if folders == self._shown:
            return
        self._shown = folders
        while (item := self._lines.takeAt(0)) is not None:
            if (old := item.widget()) is not None:
                old.deleteLater()
        for folder in folders:
            self._lines.addWidget(self._line(folder))
        self.none.setVisible(not folders)

    def _line(self, folder: Path) -> QWidget:
        remove = button("", "ghost", icon="trash", on_click=partial(self.remove, folder))
        remove.setToolTip(tr("Take this folder off the list; its files stay"))
        remove.setAccessibleName(tr("Take {folder} off the list", folder=folder))
        result = QWidget()
        layout = row(ElidedLabel(str(folder), "mono"), remove, spacing=2)
        layout.setStretch(0, 1)
        result.setLayout(layout)
        return result

    def remove(self, folder: Path) -> None:
        """Search there no longer."""
        self._apply(tuple(f for f in self.folders if f != folder))

    def _add(self) -> None:
        start = str(self.folders[-1] if self.folders else paths.data_dir())
        folder = self._dialogs.choose_folder(self, tr("Folder with models"), start)
        if folder is not None:
            self._apply(tuple(dict.fromkeys((*self.folders, folder))))

    def _apply(self, folders: tuple[Path, ...]) -> None:
        config = self._bridge.config
        if config is not None:
            self._bridge.apply_config(config.model_copy(update={"model_folders": folders}))
