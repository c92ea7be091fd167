"""Server, keys, guard, logs, appearance, and where things are kept. Qt main thread; every change acts at once.

The first three are part of the configuration and saved with it; appearance is the window's own and kept at once.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from PySide6.QtCore import QSettings, Qt, Signal
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QApplication, QButtonGroup, QGridLayout, QVBoxLayout, QWidget

from laya_desktop import __version__, paths
from laya_desktop.config.units import format_size
from laya_desktop.gui import theme
from laya_desktop.gui.bridge import NodeBridge
from laya_desktop.gui.i18n import LANGUAGES, QT_TR_NOOP, tr
from laya_desktop.gui.messages import Dialogs
from laya_desktop.gui.preferences import Preferences
from laya_desktop.gui.views.folders_card import FoldersCard
from laya_desktop.gui.views.habits_card import HabitsCard
from laya_desktop.gui.views.inputs import Choice, TextInput
from laya_desktop.gui.views.keys_card import KeysCard
from laya_desktop.gui.views.settings_form import Field, SectionForm, read_percent, write_percent
from laya_desktop.gui.views.widgets import (
    LABEL_WIDTH,
    Card,
    CopyButton,
    ElidedLabel,
    FieldRow,
    button,
    column,
    label,
    row,
    scrolled,
)
from laya_desktop.state.snapshot import NodeSnapshot

_COLUMN_PX = 560
_THREE_COLUMNS_PX = 1500

_SCHEMES = {
    theme.Scheme.SYSTEM: QT_TR_NOOP("System"),
    theme.Scheme.LIGHT: QT_TR_NOOP("Light"),
    theme.Scheme.DARK: QT_TR_NOOP("Dark"),
}


class SettingsPage(QWidget):
    """Two columns of cards, three in a wide window.

    Args:
        bridge: where the configuration comes from and goes to.
        settings: where the appearance is kept.
        dialogs: for choosing and showing folders.
    """

    language_chosen = Signal(str)
    """A code of ``i18n.LANGUAGES``; it is kept already, the window has to be made anew."""

    def __init__(self, bridge: NodeBridge, settings: QSettings, dialogs: Dialogs) -> None:
        super().__init__()
        self._bridge, self._settings, self._dialogs = bridge, settings, dialogs
        self.server = self._server_form()
        self.guard = self._guard_form()
        self.log = self._log_form()
        self.forms = (self.server, self.guard, self.log)
        self.keys = KeysCard(bridge)
        self.habits = HabitsCard(Preferences(settings))
        self.folders = FoldersCard(bridge, dialogs)
        self._groups = tuple(
            _group(*cards)
            for cards in (
                (self.server, self.keys, self.guard),
                (self._appearance_card(), self.habits, self.folders),
                (self.log, self._places_card()),
            )
        )
        content = QWidget()
        self._columns = QGridLayout(content)
        self._columns.setContentsMargins(*(theme.SPACE_4,) * 4)
        self._columns.setSpacing(theme.SPACE_3)
        self._columns.setRowStretch(1, 1)
        self._columns.setColumnStretch(3, 1)
        self._wide: bool | None = None
        self._arrange(wide=False)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.addWidget(scrolled(content))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Use the width there is."""
        super().resizeEvent(event)
        self._arrange(wide=self.width() >= _THREE_COLUMNS_PX)

    def _arrange(self, *, wide: bool) -> None:
        if wide == self._wide:
            return
        self._wide = wide
        first, second, third = self._groups
        top = Qt.AlignmentFlag.AlignTop
        self._columns.addWidget(first, 0, 0, 2, 1, top)
        self._columns.addWidget(second, 0, 1, top)
        self._columns.addWidget(third, *((0, 2) if wide else (1, 1)), 1, 1, top)
        for place in range(3):
            self._columns.setColumnStretch(place, 1000 if wide or place < 2 else 0)

    def _server_form(self) -> SectionForm:
        port = TextInput("5292")
        body = TextInput("32MiB")
        fields = (
            Field("port", FieldRow(tr("Port"), port, hint=tr("The node moves to a new address at once.")), port),
            Field("max_body", FieldRow(tr("Largest request"), body, key="max_body"), body, write=format_size),
        )
        return SectionForm("server", tr("Server"), fields, self._bridge)

    def _guard_form(self) -> SectionForm:
        mode = Choice(
            (
                ("shed", tr("Refuse new requests before memory runs out")),
                ("warn", tr("Warn, but go on")),
                ("off", tr("Do nothing")),
            )
        )
        fraction, ram, vram = TextInput("90 %"), TextInput("2GiB"), TextInput("1GiB")
        fields = (
            Field("mode", FieldRow(tr("When it gets tight"), mode, key="mode"), mode),
            Field(
                "mem_fraction",
                FieldRow(tr("Use at most"), fraction, key="mem_fraction", hint=tr("Of RAM, and of each GPU's memory.")),
                fraction,
                write=write_percent,
                read=read_percent,
            ),
            Field("reserve_ram", FieldRow(tr("Leave in RAM"), ram, key="reserve_ram"), ram, write=format_size),
            Field("reserve_vram", FieldRow(tr("Leave in VRAM"), vram, key="reserve_vram"), vram, write=format_size),
        )
        return SectionForm("guard", tr("Guard"), fields, self._bridge)

    def _log_form(self) -> SectionForm:
        level = Choice(
            (("debug", tr("Debug")), ("info", tr("Info")), ("warn", tr("Warnings")), ("error", tr("Errors only")))
        )
        folder, keep, total = TextInput(str(paths.log_dir()), mono=True), TextInput("7"), TextInput("1GiB")
        prompts = Choice((("off", tr("Not written")), ("on", tr("Prompts and answers are written"))))
        self.browse = button("", icon="folder", on_click=lambda: self._choose_log_folder(folder))
        self.browse.setToolTip(tr("Choose a folder"))
        self.browse.setAccessibleName(tr("Choose a folder"))
        holder = QWidget()
        holder_layout = row(folder, self.browse, spacing=6)
        holder_layout.setStretch(0, 1)
        holder.setLayout(holder_layout)
        holder.setFocusProxy(folder)
        fields = (
            Field("level", FieldRow(tr("Write"), level, key="level"), level),
            Field("dir", FieldRow(tr("Folder"), holder, key="dir"), folder, read=lambda text: text.strip() or None),
            Field("keep", FieldRow(tr("Files kept"), keep, key="keep", hint=tr("One a day.")), keep),
            Field("max_total", FieldRow(tr("Size at most"), total, key="max_total"), total, write=format_size),
            Field(
                "prompts",
                FieldRow(tr("Prompts"), prompts, key="prompts", hint=tr("What people ask is private.")),
                prompts,
                write=lambda on: "on" if on else "off",
                read=lambda text: text == "on",
            ),
        )
        return SectionForm("log", tr("Logs"), fields, self._bridge)

    def _appearance_card(self) -> Card:
        card = Card(tr("Appearance"))
        self.schemes = QButtonGroup(self)
        buttons = []
        for i, scheme in enumerate(theme.Scheme):
            choice = button(tr(_SCHEMES[scheme]), "segment")
            choice.setChecked(scheme is theme.chosen_scheme())
            self.schemes.addButton(choice, i)
            buttons.append(choice)
        self.schemes.idClicked.connect(self._choose_scheme)
        card.body.addLayout(row(*buttons, None, spacing=6))
        self.densities = QButtonGroup(self)
        names = {theme.Density.COMFORTABLE: tr("Comfortable"), theme.Density.COMPACT: tr("Compact")}
        choices = []
        for i, density in enumerate(theme.Density):
            choice = button(names[density], "segment")
            choice.setChecked(density is theme.chosen_density())
            self.densities.addButton(choice, i)
            choices.append(choice)
        self.densities.idClicked.connect(self._choose_density)
        card.body.addLayout(row(*choices, None, spacing=6))
        self.language = Choice([(code, name or tr("As the system")) for code, name in LANGUAGES.items()])
        self.language.set_value(Preferences(self._settings).language)
        self.language.edited.connect(self._choose_language)
        card.body.addWidget(FieldRow(tr("Language"), self.language))
        return card

    def speak(self, code: str) -> None:
        """Choose the window's language, as the field does."""
        self.language.set_value(code)
        self._choose_language()

    def _choose_language(self) -> None:
        code = self.language.value()
        Preferences(self._settings).language = code
        self.language_chosen.emit(code)

    def _choose_density(self, index: int) -> None:
        density = list(theme.Density)[index]
        Preferences(self._settings).density = density
        app = QApplication.instance()
        if isinstance(app, QApplication):
            theme.apply_theme(app, theme.chosen_scheme(), density)

    def _places_card(self) -> Card:
        card = Card(tr("Where things are kept"))
        self._places: dict[str, ElidedLabel] = {}
        for key, text in (
            ("config", tr("Configuration")),
            ("logs", tr("Logs")),
            ("models", tr("Models")),
            ("window", tr("Window")),
        ):
            place = ElidedLabel("", "mono")
            self._places[key] = place
            name = label(text)
            name.setFixedWidth(LABEL_WIDTH)
            show = button("", "ghost", icon="folder", on_click=partial(self.show_place, key))
            show.setToolTip(tr("Show in the file manager"))
            show.setAccessibleName(tr("Show {lower} in the file manager", lower=text.lower()))
            line = row(name, place, CopyButton(partial(self.place, key)), show, spacing=2)
            line.setStretch(1, 1)
            card.body.addLayout(line)
        card.body.addWidget(label(tr("Laya Desktop {version}", version=__version__), "hint"))
        return card

    def showEvent(self, event: QShowEvent) -> None:
        """Catch up."""
        super().showEvent(event)
        self.set_snapshot(self._bridge.snapshot)

    def set_snapshot(self, snapshot: NodeSnapshot) -> None:
        """Show the configuration in force, except where something unfinished is typed."""
        if snapshot.config is None:
            return
        for form in self.forms:
            form.show_config(snapshot.config)
        self.keys.set_snapshot(snapshot)
        self.folders.set_snapshot(snapshot)
        self._places["config"].set_text(snapshot.config_status.path or tr("not saved yet"))
        self._places["logs"].set_text(str(snapshot.config.log.dir or paths.log_dir()))
        self._places["models"].set_text(str(paths.data_dir()))
        self._places["window"].set_text(str(paths.state_dir()))

    def _choose_log_folder(self, editor: TextInput) -> None:
        folder = self._dialogs.choose_folder(self, tr("Folder for logs"), editor.value() or str(paths.log_dir()))
        if folder is not None:
            editor.set_value(str(folder))
            editor.edited.emit()

    def place(self, key: str) -> str:
        """The path shown for ``config``, ``logs``, ``models`` or ``window``."""
        return self._places[key].full_text

    def show_place(self, key: str) -> None:
        """Show that place in the file manager."""
        place = Path(self.place(key))
        self._dialogs.open_folder(place if place.is_dir() else place.parent)

    def _choose_scheme(self, index: int) -> None:
        scheme = list(theme.Scheme)[index]
        self._settings.setValue("appearance", scheme.value)
        app = QApplication.instance()
        if isinstance(app, QApplication):
            theme.apply_theme(app, scheme)


def _group(*cards: QWidget) -> QWidget:
    holder = QWidget()
    holder.setLayout(column(*cards, spacing=theme.SPACE_3))
    holder.setMaximumWidth(_COLUMN_PX)
    return holder
