"""Answers to the window's questions, set by the test; every question is recorded."""

from __future__ import annotations

from pathlib import Path


class FakeDialogs:
    """Satisfies ``laya_desktop.gui.messages.Dialogs``.

    Attributes:
        unsaved: answer to "save before closing?".
        revert: answer to "throw changes away?".
        path: the file or folder that every file dialog returns; None: the user cancelled.
        asked: names of the questions, oldest first.
        opened: folders shown in the file manager.
    """

    def __init__(self) -> None:
        self.unsaved = "cancel"
        self.revert = True
        self.path: Path | None = None
        self.asked: list[str] = []
        self.opened: list[Path] = []
        self.suggested = ""

    def ask_unsaved(self, parent, changes):
        self.asked.append("unsaved")
        return self.unsaved

    def confirm_revert(self, parent, changes):
        self.asked.append("revert")
        return self.revert

    def open_path(self, parent, title, folder, files):
        self.asked.append("open")
        return self.path

    def save_path(self, parent, title, suggestion, files):
        self.asked.append("save")
        self.suggested = suggestion
        return self.path

    def choose_folder(self, parent, title, folder):
        self.asked.append("folder")
        return self.path

    def open_folder(self, folder):
        self.opened.append(folder)
