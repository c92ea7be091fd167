"""What makes the window a good neighbour on a desktop, put around it. Qt main thread.

Tray and notifications, mini view, full-screen Overview, command palette, shortcuts, dropped files, second starts. Each
part is a module of its own that knows nothing of the others; this one joins them with the window's pages and actions.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, QSettings
from PySide6.QtGui import QAction, QGuiApplication, QKeySequence
from PySide6.QtWidgets import QApplication

from laya_desktop import paths
from laya_desktop.config.store import load_file
from laya_desktop.errors import LayaError
from laya_desktop.gui import theme
from laya_desktop.gui.bridge import NodeBridge
from laya_desktop.gui.i18n import LANGUAGES, tr
from laya_desktop.gui.messages import Dialogs, Message, message_for_error
from laya_desktop.gui.preferences import Preferences
from laya_desktop.gui.qtmodels.history import History
from laya_desktop.gui.views.big_overview import BigOverview
from laya_desktop.gui.views.drops import Drops
from laya_desktop.gui.views.main_window import MainWindow
from laya_desktop.gui.views.mini_view import MiniView
from laya_desktop.gui.views.models_page import ModelsPage
from laya_desktop.gui.views.palette import Command, CommandPalette
from laya_desktop.gui.views.playground_page import PlaygroundPage
from laya_desktop.gui.views.settings_page import SettingsPage
from laya_desktop.gui.views.shortcut_list import ShortcutList
from laya_desktop.gui.views.tray import Tray
from laya_desktop.gui.views.welcome import Welcome
from laya_desktop.state.enums import ModelState
from laya_desktop.state.snapshot import FoundModel, ModelFileInfo


class Habits(QObject):
    """Everything around one window.

    Args:
        window: with its pages.
        bridge: the node.
        history: what a second Overview plots.
        dialogs: for folders and files.
        settings: what is remembered.
    """

    def __init__(
        self, window: MainWindow, bridge: NodeBridge, history: History, dialogs: Dialogs, settings: QSettings
    ) -> None:
        super().__init__(window)
        self._window, self._bridge, self._dialogs, self._settings = window, bridge, dialogs, settings
        self.preferences = Preferences(settings)
        self.mini = MiniView(bridge, settings)
        self.mini.window_wanted.connect(window.raise_window)
        self._history = history
        self.big: BigOverview | None = None
        self.tray = Tray(bridge, window.actions_, self.preferences, window)
        self.tray.show_wanted.connect(self._show)
        self.tray.mini_wanted.connect(self.toggle_mini)
        self.palette = CommandPalette(window, self.commands)
        self.shortcuts = ShortcutList(window, self.shortcut_lines)
        self.welcome = Welcome(bridge, self.preferences, window)
        self.welcome.model_wanted.connect(self._add_and_load)
        self.welcome.demo_wanted.connect(self.load_demo)
        self.welcome.folder_wanted.connect(self._add_folder)
        self.welcome.playground_wanted.connect(partial(window.show_page, "Playground"))
        self.drops = Drops(window)
        self.drops.config_dropped.connect(window.actions_.open_file)
        self.drops.model_dropped.connect(self.add_model)
        if isinstance(models := window.pages.get("Models"), ModelsPage):
            models.chat_wanted.connect(self.chat_with)
        self._action(tr("Commands"), "Ctrl+K", self.palette.toggle)
        self._action(tr("Shortcuts"), "F1", self.shortcuts.toggle)
        self._action(tr("Settings"), "Ctrl+,", partial(window.show_page, "Settings"))
        self._action(tr("Mini view"), "Ctrl+Shift+M", self.toggle_mini)
        self._action(tr("Overview on a whole screen"), "F11", self.toggle_big)
        window.keep_open = lambda: self.preferences.close_to_tray and self.tray.available
        window.closed.connect(self.close)

    def _action(self, text: str, keys: str, act: Callable[[], object]) -> None:
        action = QAction(text, self._window)
        action.setShortcut(QKeySequence(keys))
        action.triggered.connect(lambda _checked=False: act())
        self._window.addAction(action)

    def close(self) -> None:
        """Take everything off the screen."""
        self.tray.icon.hide()
        self.mini.close()
        if self.big is not None:
            self.big.close()

    def _show(self, page: str) -> None:
        if page:
            self._window.show_page(page)
        self._window.raise_window()

    def chat_with(self, model: str) -> None:
        """Show the Playground with that model."""
        self._window.show_page("Playground")
        if isinstance(page := self._window.pages["Playground"], PlaygroundPage):
            page.choose_model(model)

    def toggle_mini(self) -> None:
        """Show the mini view, or close it."""
        self.mini.close() if self.mini.isVisible() else self.mini.show()

    def toggle_big(self) -> None:
        """Overview on a whole screen, or back."""
        if self.big is None:
            self.big = BigOverview(self._bridge, self._history, self._dialogs)
        if self.big.isVisible():
            self.big.close()
        else:
            self.big.open_beside(self._window)

    def on_wish(self, config: str, model: str) -> None:
        """A second start: come to the front, open its file, load its model."""
        self._window.raise_window()

        def load() -> None:
            if model:
                self._bridge.load_model(model)

        if config and config != self._bridge.snapshot.config_status.path:
            self._window.actions_.open_file(Path(config), load)
        else:
            load()

    def add_model(self, path: Path) -> None:
        """Add a model file without asking anything; its form shows what it takes. Bad files become a banner."""
        page = self._window.pages.get("Models")
        if not isinstance(page, ModelsPage):
            return
        folder = path.is_dir()

        def found(info: ModelFileInfo) -> None:
            engine = "transformers" if folder else "llama_cpp"
            name = path.name if folder else path.stem
            self._window.show_page("Models")
            page.add_found(FoundModel(str(path), name, "", info.size_bytes, info, engine))

        def failed(error: LayaError) -> None:
            self._window.show_message(message_for_error(error))

        known = next(
            (m.name for m in (self._bridge.config.models if self._bridge.config else ()) if m.path == path), ""
        )
        if known:
            self._window.show_page("Models")
            page.select(known)
            text = tr("{file} is here already, as {name}.", file=path.name, name=known)
            self._window.show_message(Message("info", text, key="drop"))
        else:
            self._bridge.inspect_model(path, found, failed)

    def welcome_once(self) -> None:
        """The first steps, where they were neither taken nor skipped."""
        if not self.preferences.welcomed:
            self.welcome.open()

    def _add_and_load(self, found: FoundModel) -> None:
        page = self._window.pages.get("Models")
        if isinstance(page, ModelsPage):
            self._window.show_page("Models")
            page.add_found(found)
            config = self._bridge.config
            name = next((m.name for m in config.models if str(m.path) == found.path), "") if config else ""
            if name:
                self._bridge.load_model(name)

    def load_demo(self) -> None:
        """Load the model that comes along; it is added where the configuration does not have it."""
        config = self._bridge.config
        if config is None:
            return
        demo = load_file(paths.configs_dir() / "demo.yaml").config.models[0]
        load = partial(self._bridge.load_model, demo.name)
        if any(m.name == demo.name for m in config.models):
            load()
        else:
            wanted = config.model_copy(update={"models": (*config.models, demo)})
            self._bridge.apply_config(wanted, lambda _none: load())

    def _add_folder(self) -> None:
        config = self._bridge.config
        folder = self._dialogs.choose_folder(self._window, tr("Folder with models"), str(Path.home()))
        if folder is not None and config is not None:
            folders = tuple(dict.fromkeys((*config.model_folders, folder)))
            wanted = config.model_copy(update={"model_folders": folders})
            self._bridge.apply_config(wanted, lambda _none: self.welcome.search())

    def shortcut_lines(self) -> list[tuple[str, str]]:
        """(keys, what they do) of every action of the window."""
        return [(a.shortcut().toString(), a.text()) for a in self._window.actions() if not a.shortcut().isEmpty()]

    def commands(self) -> list[Command]:
        """Everything that can be done now, for the palette."""
        window, pages = self._window, list(self._window.pages)
        result = [
            Command(tr("Go to {page}", page=tr(name)), partial(window.show_page, name), f"Ctrl+{i + 1}")
            for i, name in enumerate(pages)
        ]
        result += self._model_commands()
        result += [
            Command(action.text(), action.trigger, action.shortcut().toString())
            for action in window.actions()
            if action.isEnabled() and action.text() not in map(tr, pages) and action.text() != tr("Commands")
        ]
        result += self._view_commands()
        return result

    def _model_commands(self) -> list[Command]:
        result = []
        for model in self._bridge.snapshot.models:
            load = partial(self._bridge.load_model, model.name)
            if model.state is ModelState.READY:
                text, act = tr("Unload {name}", name=model.name), partial(self._bridge.unload_model, model.name)
                result.append(Command(text, act, tr("Model")))
            elif model.state in (ModelState.UNLOADED, ModelState.FAILED):
                result.append(Command(tr("Load {name}", name=model.name), load, tr("Model")))
                on_cpu = partial(self._bridge.load_model, model.name, "cpu")
                result.append(Command(tr("Load {name} on CPU", name=model.name), on_cpu, tr("Model")))
                if self._bridge.snapshot.capability.gpu_available:
                    on_gpu = partial(self._bridge.load_model, model.name, "gpu")
                    result.append(Command(tr("Load {name} on GPU", name=model.name), on_gpu, tr("Model")))
        return result

    def _view_commands(self) -> list[Command]:
        schemes = {
            theme.Scheme.SYSTEM: tr("Appearance: as the system"),
            theme.Scheme.LIGHT: tr("Appearance: light"),
            theme.Scheme.DARK: tr("Appearance: dark"),
        }
        result = [Command(text, partial(self.set_scheme, scheme)) for scheme, text in schemes.items()]
        if isinstance(page := self._window.pages.get("Settings"), SettingsPage):
            result += [
                Command(tr("Language: {name}", name=name or tr("as the system")), partial(page.speak, code))
                for code, name in LANGUAGES.items()
            ]
        result.append(Command(tr("First steps"), self.welcome.open))
        result.append(Command(tr("Load the demo model"), self.load_demo))
        snapshot = self._bridge.snapshot
        if snapshot.node.url:
            result.append(Command(tr("Copy the address"), partial(_copy, snapshot.node.url), snapshot.node.url))
        models = self._window.pages.get("Models")
        if isinstance(models, ModelsPage):
            result.append(Command(tr("Add a model"), self._then("Models", models.start_draft), "Ctrl+N"))
            result.append(Command(tr("Find models on this machine"), self._then("Models", models.find_models)))
        logs = snapshot.config.log.dir if snapshot.config else None
        for text, place in ((tr("Open the folder of logs"), logs or paths.log_dir()),
                            (tr("Open the folder of models"), paths.data_dir())):  # fmt: skip
            result.append(Command(text, partial(self._dialogs.open_folder, place)))
        return result

    def _then(self, page: str, act: Callable[[], object]) -> Callable[[], object]:
        def both() -> None:
            self._window.show_page(page)
            act()

        return both

    def set_scheme(self, scheme: theme.Scheme) -> None:
        """Switch the appearance and remember it."""
        self._settings.setValue("appearance", scheme.value)
        app = QApplication.instance()
        if isinstance(app, QApplication):
            theme.apply_theme(app, scheme)


def _copy(text: str) -> None:
    QGuiApplication.clipboard().setText(text)
