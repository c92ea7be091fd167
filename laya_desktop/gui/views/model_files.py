"""What is known of model files: metadata or the fault, by path. Qt main thread; asks the bridge once a path."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from laya_desktop.errors import LayaError
from laya_desktop.gui.bridge import NodeBridge
from laya_desktop.state.snapshot import ModelFileInfo


class ModelFiles(QObject):
    """A cache over ``bridge.inspect_model``."""

    changed = Signal()
    """Something became known."""

    def __init__(self, bridge: NodeBridge, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._bridge = bridge
        self._known: dict[str, ModelFileInfo | LayaError | None] = {}

    def get(self, path: str) -> ModelFileInfo | LayaError | None:
        """Metadata, the fault, or None while it is being read (which this starts); an empty path is None."""
        path = path.strip()
        if not path:
            return None
        if path not in self._known:
            self._known[path] = None
            self._bridge.inspect_model(
                Path(path), lambda info: self._on_known(path, info), lambda error: self._on_known(path, error)
            )
        return self._known[path]

    def get_for(self, path: str, engine: str) -> ModelFileInfo | LayaError | None:
        """Like ``get``; only llama.cpp's files must be GGUF, so that for other engines a fault says nothing."""
        known = self.get(path)
        return None if isinstance(known, LayaError) and engine != "llama_cpp" else known

    def forget_faults(self, paths: Iterable[str] | None = None) -> None:
        """Look again at files that were missing or broken (of these paths; None: all)."""
        wanted = set(self._known if paths is None else paths)
        self._known = {p: k for p, k in self._known.items() if p not in wanted or not isinstance(k, LayaError)}

    def _on_known(self, path: str, result: ModelFileInfo | LayaError) -> None:
        self._known[path] = result
        self.changed.emit()
