"""Settings of the program: start with the session, tray, notifications. Qt main thread; each acts at once."""

from __future__ import annotations

from PySide6.QtWidgets import QSystemTrayIcon

from laya_desktop.errors import LayaError
from laya_desktop.gui import autostart
from laya_desktop.gui.autostart import Autostart
from laya_desktop.gui.i18n import tr
from laya_desktop.gui.preferences import Preferences
from laya_desktop.gui.views.inputs import Switch
from laya_desktop.gui.views.widgets import Card, label


class HabitsCard(Card):
    """Three switches and what they cost.

    Args:
        preferences: where two of them are kept.
        place: where the third is; None: this platform's.
    """

    def __init__(self, preferences: Preferences, place: Autostart | None = None) -> None:
        super().__init__(tr("On this desktop"), spacing=6)
        self._preferences, self._place = preferences, place
        self.start = Switch(tr("Start with the session"))
        self.tray = Switch(tr("Closing the window leaves the node running in the tray"))
        self.notifications = Switch(tr("Notify about alerts and failed loads"))
        self.failure = label(role="error", wrap=True)
        self.failure.hide()
        self.start.edited.connect(self._on_start)
        self.tray.edited.connect(self._on_tray)
        self.notifications.edited.connect(self._on_notifications)
        self.body.addWidget(self.start)
        self.body.addWidget(label(tr("With the tray icon alone; models load when they are needed."), "hint", wrap=True))
        self.body.addWidget(self.tray)
        self._no_tray = label(tr("This desktop shows no tray, so closing ends the program."), "hint", wrap=True)
        self.body.addWidget(self._no_tray)
        self.body.addWidget(self.notifications)
        self.body.addWidget(label(tr("Only while another window is in front."), "hint", wrap=True))
        self.body.addWidget(self.failure)
        self.show_state()

    def show_state(self) -> None:
        """Show what is in force."""
        try:
            self._place = self._place or autostart.place()
            self.start.set_value(self._place.is_on())
        except LayaError as error:
            self.start.setEnabled(False)
            self.start.setToolTip(str(error))
        tray = QSystemTrayIcon.isSystemTrayAvailable()
        self.tray.set_value(self._preferences.close_to_tray and tray)
        self.tray.setEnabled(tray)
        self._no_tray.setVisible(not tray)
        self.notifications.set_value(self._preferences.notifications)

    def _on_start(self) -> None:
        assert self._place is not None
        self.failure.hide()
        try:
            self._place.turn_on(autostart.command()) if self.start.value() else self._place.turn_off()
        except OSError as error:
            self.failure.setText(tr("Could not write {path}: {why}.", path=error.filename, why=error.strerror))
            self.failure.show()
        self.start.set_value(self._place.is_on())

    def _on_tray(self) -> None:
        self._preferences.close_to_tray = self.tray.value()

    def _on_notifications(self) -> None:
        self._preferences.notifications = self.notifications.value()
