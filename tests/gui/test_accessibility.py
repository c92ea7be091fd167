"""Every control of every page has a name for screen readers, and the keyboard reaches it."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSpinBox,
    QComboBox,
    QHeaderView,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QTextEdit,
    QWidget,
)

from laya_desktop.gui import window as windows
from laya_desktop.logs import LogRing
from laya_desktop.state.snapshot import ConfigStatus

INTERACTIVE = (QAbstractButton, QAbstractItemView, QAbstractSpinBox, QComboBox, QLineEdit, QPlainTextEdit, QTextEdit)


@pytest.fixture
def both(qtbot, bridge, dialogs, service):
    window, habits = windows.assemble(bridge, LogRing(), dialogs)
    qtbot.addWidget(
        window, before_close_func=lambda _w: service.publish(config_status=ConfigStatus()) and bridge.poll()
    )
    qtbot.addWidget(habits.mini)
    window.show()
    yield window, habits
    habits.close()


def name_of(widget: QWidget) -> str:
    """What a screen reader would say."""
    buddy = next((b.text() for b in widget.window().findChildren(QLabel) if b.buddy() is widget), "")
    text = widget.text() if isinstance(widget, QAbstractButton) else ""
    return (widget.accessibleName() or text or buddy).strip()


def controls(root: QWidget) -> list[QWidget]:
    """Interactive widgets; parts that Qt puts into its own (a header's corner, a combo's list) speak through them."""

    def own(widget: QWidget) -> bool:
        parent = widget.parentWidget()
        inner = isinstance(parent, (QComboBox, QAbstractSpinBox, QAbstractItemView, QLineEdit))
        popup = any(isinstance(p, QComboBox) for p in parents(widget))
        return not (inner or popup or isinstance(widget, QHeaderView))

    return [w for w in root.findChildren(QWidget) if isinstance(w, INTERACTIVE) and own(w)]


def parents(widget: QWidget):
    while (widget := widget.parentWidget()) is not None:
        yield widget


def test_every_control_has_a_name(both):
    window, habits = both
    unnamed = []
    for name, page in window.pages.items():
        window.show_page(name)
        unnamed += [(name, w) for w in controls(page) if not name_of(w)]
    for part in (window.header, window.navigation, window.review, habits.palette, habits.shortcuts, habits.welcome,
                 habits.mini):  # fmt: skip
        unnamed += [(type(part).__name__, w) for w in controls(part) if not name_of(w)]
    assert not unnamed, "\n".join(f"{where}: {w} in {w.parentWidget()}" for where, w in unnamed)
    assert sum(len(controls(page)) for page in window.pages.values()) > 100  # the walk has seen the pages


def test_the_check_finds_a_control_without_a_name(both, qtbot):
    window, _habits = both
    page = window.pages["Logs"]
    extra = QLineEdit(page)
    assert [w for w in controls(page) if not name_of(w)] == [extra]
    extra.setAccessibleName("Named")
    assert not [w for w in controls(page) if not name_of(w)]


def test_the_keyboard_reaches_every_control(both):
    """Tab stops at everything that is not a part of something else; roles such as copying are buttons, too."""
    window, _habits = both
    for name, page in window.pages.items():
        window.show_page(name)
        lost = [
            w
            for w in controls(page)
            if w.isVisible() and w.isEnabled() and not w.focusPolicy() & Qt.FocusPolicy.TabFocus
        ]
        assert not lost, f"{name}: {[(w, name_of(w)) for w in lost]}"
