"""What the window says and asks. Qt main thread; pure texts, and the dialogs behind one small class.

``message_for`` turns an event or an error into what a banner shows. ``Dialogs`` holds every question that stops the
user; tests pass their own with the same methods.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QFileDialog, QMessageBox, QWidget

from laya_desktop.errors import LayaError
from laya_desktop.gui.i18n import QT_TR_NOOP, tr
from laya_desktop.state.events import (
    AlertCleared,
    AlertRaised,
    ConfigApplied,
    ConfigChangedOnDisk,
    ConfigSaved,
    Event,
    ModelFailed,
    ModelLoaded,
    NodeStateChanged,
    Notice,
    Severity,
)

YAML_FILES = QT_TR_NOOP("YAML files (*.yaml *.yml);;All files (*)")
Answer = Literal["save", "discard", "cancel"]


@dataclass(frozen=True, slots=True)
class Choice:
    """A button of a message: its text and the command that ``Actions.run`` understands."""

    text: str
    command: str


@dataclass(frozen=True, slots=True)
class Message:
    """A non-modal message.

    Attributes:
        severity: info messages leave by themselves.
        text: full sentences: what, where, what next.
        choices: ways out, the recommended one first.
        key: a message replaces the one with the same key; empty: the text is the key.
    """

    severity: Severity
    text: str
    choices: tuple[Choice, ...] = ()
    key: str = ""

    @property
    def identity(self) -> str:
        """What makes it the same message."""
        return self.key or self.text


def changed_on_disk_choices() -> tuple[Choice, ...]:
    """What may be done about a file that changed outside."""
    return Choice(tr("Reload"), "reload"), Choice(tr("Overwrite"), "overwrite"), Choice(tr("Save as…"), "save_as")


def message_for(event: Event) -> Message | None:
    """The banner of an event, or None where the page itself shows it."""
    match event:
        case Notice():
            return Message(event.severity, event.text)
        case AlertRaised(level="critical"):
            return Message(
                "warning", f"{event.text}.", (Choice(tr("Show guard"), "page:Overview"),), f"alert:{event.alert_id}"
            )
        case ModelFailed():
            choices = (Choice(tr("Show model"), "page:Models"), Choice(tr("Show log"), "page:Logs"))
            return Message(
                "error",
                tr("Model {model}: {error}", model=event.model, error=event.error),
                choices,
                f"model:{event.model}",
            )
        case ConfigChangedOnDisk():
            text = tr("{name} has changed on disk since it was read.", name=Path(event.path).name)
            return Message("warning", text, changed_on_disk_choices(), "config:disk")
        case ConfigSaved():
            return Message("info", tr("Saved to {path}.", path=event.path), key="config:saved")
        case NodeStateChanged(state="failed"):
            text = tr("The node could not start: {value}", value=event.error or tr("the reason is in the log."))
            return Message("error", text, (Choice(tr("Server settings"), "page:Settings"),), "node:state")
        case _:
            return None


def settled_by(event: Event) -> str | None:
    """The key of the message that an event makes obsolete, or None."""
    match event:
        case AlertCleared():
            return f"alert:{event.alert_id}"
        case ModelLoaded():
            return f"model:{event.model}"
        case ConfigSaved() | ConfigApplied(source="file" | "revert" | "open"):
            return "config:disk"
        case NodeStateChanged(state="running"):
            return "node:state"
        case _:
            return None


def message_for_error(error: LayaError) -> Message:
    """The banner of a command that failed."""
    if error.code == "changed_on_disk":
        return Message("warning", str(error), changed_on_disk_choices(), "config:disk")
    return Message("error", str(error))


class Dialogs(Protocol):
    """Questions that wait for the user."""

    def ask_unsaved(self, parent: QWidget | None, changes: tuple[str, ...]) -> Answer:
        """Closing with unsaved changes: save, discard or cancel."""
        ...

    def confirm_revert(self, parent: QWidget | None, changes: tuple[str, ...]) -> bool:
        """True: throw the unsaved changes away."""
        ...

    def open_path(self, parent: QWidget | None, title: str, folder: str, files: str) -> Path | None:
        """A file that exists, or None."""
        ...

    def save_path(self, parent: QWidget | None, title: str, suggestion: str, files: str) -> Path | None:
        """A file to write, or None."""
        ...

    def choose_folder(self, parent: QWidget | None, title: str, folder: str) -> Path | None:
        """A folder that exists, or None."""
        ...

    def open_folder(self, folder: Path) -> None:
        """Show a folder in the desktop's file manager."""
        ...


class QtDialogs:
    """The real dialogs."""

    def ask_unsaved(self, parent: QWidget | None, changes: tuple[str, ...]) -> Answer:
        """Closing with unsaved changes: save, discard or cancel."""
        box = _box(parent, tr("Save the changes before closing?"), changes)
        buttons = QMessageBox.StandardButton
        box.setStandardButtons(buttons.Save | buttons.Discard | buttons.Cancel)
        box.setDefaultButton(buttons.Save)
        answers: dict[int, Answer] = {buttons.Save.value: "save", buttons.Discard.value: "discard"}
        return answers.get(box.exec(), "cancel")

    def confirm_revert(self, parent: QWidget | None, changes: tuple[str, ...]) -> bool:
        """True: throw the unsaved changes away."""
        box = _box(parent, tr("Go back to the saved file? These changes are lost."), changes)
        revert = box.addButton(tr("Revert"), QMessageBox.ButtonRole.DestructiveRole)
        box.addButton(QMessageBox.StandardButton.Cancel)
        box.exec()
        return box.clickedButton() is revert

    def open_path(self, parent: QWidget | None, title: str, folder: str, files: str) -> Path | None:
        """A file that exists, or None."""
        name, _ = QFileDialog.getOpenFileName(parent, title, folder, files)
        return Path(name) if name else None

    def save_path(self, parent: QWidget | None, title: str, suggestion: str, files: str) -> Path | None:
        """A file to write, or None."""
        name, _ = QFileDialog.getSaveFileName(parent, title, suggestion, files)
        return Path(name) if name else None

    def choose_folder(self, parent: QWidget | None, title: str, folder: str) -> Path | None:
        """A folder that exists, or None."""
        name = QFileDialog.getExistingDirectory(parent, title, folder)
        return Path(name) if name else None

    def open_folder(self, folder: Path) -> None:
        """Show a folder in the desktop's file manager."""
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(folder)))


_LISTED = 8


def _box(parent: QWidget | None, text: str, changes: tuple[str, ...]) -> QMessageBox:
    box = QMessageBox(parent)
    box.setIcon(QMessageBox.Icon.NoIcon)
    box.setWindowTitle(tr("Laya Desktop"))
    box.setText(text)
    rest = tr("\n… and {value} more", value=len(changes) - _LISTED) if len(changes) > _LISTED else ""
    box.setInformativeText("\n".join(f"• {change}" for change in changes[:_LISTED]) + rest)
    return box
