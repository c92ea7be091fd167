"""Files dropped onto the window: a GGUF file or model folder becomes a model, YAML is opened. Qt main thread."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QEvent, QMimeData, QObject, Signal
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QWidget

MODELS, YAML = (".gguf",), (".yaml", ".yml")


def wanted_files(mime: QMimeData) -> list[Path]:
    """The local files of a drag that the window can do something with."""
    files = [Path(url.toLocalFile()) for url in mime.urls() if url.isLocalFile()]
    return [f for f in files if f.suffix.lower() in (*MODELS, *YAML) or (f / "config.json").is_file()]


class Drops(QObject):
    """Watches a window for files."""

    model_dropped = Signal(object)
    """Path of a model file or folder."""
    config_dropped = Signal(object)
    """Path of a YAML file; the last of several."""

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        window.setAcceptDrops(True)
        window.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Take what can be used; leave everything else to Qt, which shows that it cannot be dropped."""
        if isinstance(event, QDropEvent) and event.type() in (QEvent.Type.DragEnter, QEvent.Type.Drop):
            files = wanted_files(event.mimeData())
            if files:
                event.acceptProposedAction()
                if not isinstance(event, QDragEnterEvent):
                    self._take(files)
                return True
        return super().eventFilter(watched, event)

    def _take(self, files: list[Path]) -> None:
        configs = [f for f in files if f.suffix.lower() in YAML]
        if configs:
            self.config_dropped.emit(configs[-1])
        for file in files:
            if file not in configs:
                self.model_dropped.emit(file)
