"""What the Models page asks in dialogs; tests answer in their place. Qt main thread."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QFileDialog, QMessageBox, QWidget

from laya_desktop.gui.i18n import tr

Ask = Callable[[QWidget, str, str], bool]
"""(parent, question, what the button says) → is it meant?"""
Choose = Callable[[QWidget, bool], str]
"""(parent, a folder instead of a file) → a path, or empty."""


def ask_in_dialog(parent: QWidget, question: str, action: str) -> bool:
    """Ask with the way out as the default button."""
    box = QMessageBox(
        QMessageBox.Icon.Question, tr("Laya Desktop"), question, QMessageBox.StandardButton.Cancel, parent
    )
    yes = box.addButton(action, QMessageBox.ButtonRole.DestructiveRole)
    box.setDefaultButton(QMessageBox.StandardButton.Cancel)
    box.exec()
    return box.clickedButton() is yes


def choose_in_dialog(parent: QWidget, folder: bool) -> str:
    """Let the user choose a model file, or a model folder."""
    if folder:
        return QFileDialog.getExistingDirectory(parent, tr("Choose a model folder"))
    return QFileDialog.getOpenFileName(parent, tr("Choose a model file"), "", tr("Models (*.gguf);;All files (*)"))[0]
