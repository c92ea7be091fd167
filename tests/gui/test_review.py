"""The review of unsaved changes as lines of the file."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QTextCursor
from PySide6.QtWidgets import QWidget

from laya_desktop.config.schema import NodeConfig
from laya_desktop.errors import LayaError
from laya_desktop.gui import theme
from laya_desktop.gui.qtmodels.history import History
from laya_desktop.gui.views.diff_view import MAX_LINES, DiffView, role_of
from laya_desktop.gui.views.main_window import MainWindow
from laya_desktop.state.snapshot import ConfigStatus

DIFF = "--- app.yaml\n+++ app.yaml (unsaved)\n@@ -1,3 +1,3 @@\n version: 1\n-  port: 5292\n+  port: 5293\n"


@pytest.fixture
def window(qtbot, bridge, dialogs, settings, service):
    service.publish(config_status=ConfigStatus("app.yaml", 1, ("server: port 5292 → 5293",)))
    result = MainWindow(bridge, {"Overview": QWidget()}, History(), dialogs, settings)
    qtbot.addWidget(
        result, before_close_func=lambda _w: service.publish(config_status=ConfigStatus()) and bridge.poll()
    )
    bridge.poll()
    result.resize(1100, 700)
    result.show()
    return result


def colours(view: DiffView) -> dict[str, str]:
    """Text colour by the line's first character."""
    found = {}
    block = view.document().begin()
    while block.isValid():
        cursor = QTextCursor(block)
        cursor.movePosition(QTextCursor.MoveOperation.EndOfBlock)
        found[block.text()[:1]] = cursor.charFormat().foreground().color().name()
        block = block.next()
    return found


@pytest.mark.parametrize(
    ("line", "role"),
    [("+a", "calm"), ("-a", "critical"), ("@@ -1 +1 @@", "secondary"), (" a", None), ("", None), ("+++ x", None)],
)
def test_the_first_character_gives_the_colour(line, role):
    assert role_of(line) == role


def test_a_diff_is_coloured_in_both_themes(qtbot, qapp):
    view = DiffView()
    qtbot.addWidget(view)
    for scheme in (theme.Scheme.LIGHT, theme.Scheme.DARK):
        theme.apply_theme(qapp, scheme)
        view.set_diff(DIFF)
        found = colours(view)
        assert found["+"] == theme.color("calm").name()
        assert found["-"] == theme.color("critical").name()
    assert view.toPlainText().splitlines() == DIFF.splitlines()[2:]
    assert view.isReadOnly()
    theme.apply_theme(qapp, theme.Scheme.LIGHT)


def test_the_view_is_as_tall_as_its_lines_up_to_a_bound(qtbot):
    view = DiffView()
    qtbot.addWidget(view)
    view.set_diff("\n".join(f"+{i}" for i in range(5)))
    five = view.height()
    view.set_diff("\n".join(f"+{i}" for i in range(MAX_LINES)))
    most = view.height()
    view.set_diff("\n".join(f"+{i}" for i in range(500)))
    assert five < most == view.height()


def test_the_panel_shows_what_saving_would_write(qtbot, window, service, bridge):
    service.answers["diff_config"] = DIFF
    qtbot.mouseClick(window.header.review, Qt.MouseButton.LeftButton)
    assert not service.called("diff_config")
    qtbot.mouseClick(window.review.in_file, Qt.MouseButton.LeftButton)
    bridge.poll()
    assert window.review.diff.isVisible()
    assert window.review.diff.diff == DIFF
    assert window.rect().contains(window.review.geometry())
    service.answers["diff_config"] = DIFF.replace("5293", "5294")
    service.apply_config(NodeConfig())
    bridge.poll()
    bridge.poll()
    assert "5294" in window.review.diff.diff
    qtbot.mouseClick(window.review.in_words, Qt.MouseButton.LeftButton)
    assert not window.review.diff.isVisible()


def test_a_file_that_cannot_be_edited_in_place_says_so(qtbot, window, service, bridge):
    service.answers["diff_config"] = LayaError("The file cannot be edited in place.", hint="Save as another file.")
    qtbot.mouseClick(window.header.review, Qt.MouseButton.LeftButton)
    qtbot.mouseClick(window.review.in_file, Qt.MouseButton.LeftButton)
    bridge.poll()
    assert not window.review.diff.isVisible()
    assert "cannot be edited in place" in window.review._no_diff.text()
    assert not window.banners.banners
