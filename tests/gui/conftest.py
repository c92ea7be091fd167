"""Fixtures of the window's tests: an isolated home, a themed application, a fake node, and a guard against leaks."""

from __future__ import annotations

import gc
import threading

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QSettings, QThread, QTimer
from PySide6.QtWidgets import QApplication

from laya_desktop.gui import theme
from laya_desktop.gui.bridge import NodeBridge
from tests.helpers.fake_dialogs import FakeDialogs
from tests.helpers.fake_service import FakeService
from tests.helpers.sample_data import sample_snapshot


@pytest.fixture(scope="session")
def qapp_args():
    return ["laya-desktop"]


@pytest.fixture(autouse=True)
def _isolated_home(tmp_path, monkeypatch):
    monkeypatch.setenv("LAYA_HOME", str(tmp_path / "home"))


@pytest.fixture(autouse=True)
def _themed(qapp):
    """Every test starts in the light theme; switching costs nothing when it is shown already."""
    if theme.chosen_scheme() is not theme.Scheme.LIGHT or not qapp.styleSheet():
        theme.apply_theme(qapp, theme.Scheme.LIGHT)


@pytest.fixture(autouse=True)
def _no_leaks(qapp):
    """Fails a test that leaves a window on screen, a timer running or a thread alive.

    qtbot closes the widgets that were given to it when its own fixture ends; what is left here belongs to nobody.
    """
    threads = set(threading.enumerate())
    yield
    for _ in range(3):
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        qapp.processEvents()
    gc.collect()
    windows = [w for w in QApplication.topLevelWidgets() if w.isVisible()]
    assert not windows, f"left open: {windows}"
    timers = [o for o in gc.get_objects() if isinstance(o, QTimer) and _alive(o) and o.isActive()]
    assert not timers, f"left running: {[(t, t.parent()) for t in timers]}"
    running = [o for o in gc.get_objects() if isinstance(o, QThread) and _alive(o) and o is not qapp.thread()]
    assert not [t for t in running if t.isRunning()], f"left running: {running}"
    left = [t for t in threading.enumerate() if t not in threads and t.is_alive() and not t.daemon]
    assert not left, f"threads left: {left}"


def _alive(item) -> bool:
    from shiboken6 import isValid

    return isValid(item)


@pytest.fixture
def service():
    """The busy workstation of the pictures."""
    return FakeService(sample_snapshot())


@pytest.fixture
def bridge(qapp, service):
    """A bridge that tests poll by hand."""
    return NodeBridge(service)


@pytest.fixture
def dialogs():
    return FakeDialogs()


@pytest.fixture
def settings(tmp_path):
    return QSettings(str(tmp_path / "window.ini"), QSettings.Format.IniFormat)
