"""A picture of every page in both schemes and languages and at two sizes, in ``artifacts/pictures``, to be looked at.

What a test can see is checked here: no text that is cut, nothing to scroll sideways, something drawn on each page.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QSize
from PySide6.QtWidgets import QAbstractItemView, QAbstractScrollArea, QLabel, QPushButton, QWidget

from laya_desktop.gui import i18n, theme
from laya_desktop.gui import window as windows
from laya_desktop.gui.views.fields import ElidedLabel
from laya_desktop.logs import LogRing
from laya_desktop.state.snapshot import ConfigStatus
from tests.helpers.sample_data import sample_snapshot

FOLDER = Path(__file__).resolve().parents[2] / "artifacts" / "pictures"
SIZES = (QSize(1280, 800), QSize(2560, 1440))
LOG = (
    ("node", "info", "Listening on http://127.0.0.1:5292"),
    ("pool", "info", "Model 'my-llm-7b' is ready on CUDA0 after 3.4 s"),
    ("guarding", "warning", "RAM full in about 22 s at this rate: batch requests wait"),
    ("upstream", "error", "'big-box' does not answer: connection refused; tried again in 5 s"),
)


@pytest.fixture
def ring():
    ring = LogRing()
    for i, (name, level, text) in enumerate(LOG * 4):
        ring.append(1_796_200_000 + 7 * i, level, f"laya_desktop.node.{name}", text)
    return ring


@pytest.fixture
def language(request):
    i18n.set_language(request.param)
    yield request.param
    i18n.set_language("en")


@pytest.fixture
def window(qtbot, qapp, bridge, dialogs, service, ring, language):
    window, habits = windows.assemble(bridge, ring, dialogs)
    qtbot.addWidget(
        window, before_close_func=lambda _w: service.publish(config_status=ConfigStatus()) and bridge.poll()
    )
    qtbot.addWidget(habits.mini)
    for i in range(241):
        service.publish(sample_snapshot(i / 4))
        bridge.poll()
    window.show()
    yield window
    habits.close()


def settle(bridge) -> None:
    for _ in range(4):
        bridge.poll()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        QCoreApplication.processEvents()


def where(widget: QWidget) -> str:
    names = []
    at: QWidget | None = widget
    while at is not None and len(names) < 4:
        names.append(type(at).__name__)
        at = at.parentWidget()
    return " in ".join(names)


def cut_texts(page: QWidget) -> list[str]:
    """Labels and buttons that are narrower or lower than what they say."""
    cut = []
    for label in page.findChildren(QLabel):
        if not label.isVisible() or not label.text() or isinstance(label, ElidedLabel):
            continue
        room = label.contentsRect()
        if label.wordWrap():
            fits = label.heightForWidth(label.width()) <= label.height() + 1
        else:
            fits = label.sizeHint().width() <= label.width() + 1 and label.fontMetrics().height() <= room.height() + 1
        if not fits:
            cut.append(f"{label.text()!r}: {where(label)}, {label.width()}×{label.height()}, wants {label.sizeHint()}")
    buttons = [b for b in page.findChildren(QPushButton) if b.isVisible() and b.text()]
    narrow = [b for b in buttons if b.sizeHint().width() > b.width() + 1]
    return cut + [f"{b.text()!r}: {where(b)}, {b.width()}, wants {b.sizeHint().width()}" for b in narrow]


def sideways(page: QWidget) -> list[str]:
    """Scroll areas of forms and pages that need a horizontal scroll bar."""
    return [
        where(area)
        for area in page.findChildren(QAbstractScrollArea)
        if area.isVisible() and not isinstance(area, QAbstractItemView) and area.horizontalScrollBar().maximum() > 0
    ]


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size.width()}x{size.height()}")
@pytest.mark.parametrize("scheme", [theme.Scheme.LIGHT, theme.Scheme.DARK], ids=str)
@pytest.mark.parametrize("language", ["en", "zh_CN"], indirect=True)
def test_every_page_is_whole(qtbot, qapp, window, bridge, language, scheme, size):
    FOLDER.mkdir(parents=True, exist_ok=True)
    theme.apply_theme(qapp, scheme)
    window.resize(size)
    faults = []
    for name, page in window.pages.items():
        window.show_page(name)
        settle(bridge)
        if name == "Models":
            qtbot.waitUntil(lambda page=page: bridge.poll() or bool(page.form.estimate.verdict.text()))
        if name == "Overview":
            page.make_plots()
            page.draw()
            settle(bridge)
        picture = window.grab().toImage()
        assert picture.save(str(FOLDER / f"{name.lower()}-{language}-{scheme}-{size.width()}x{size.height()}.png"))
        faults += [f"{name}: cut: {text}" for text in cut_texts(page)]
        faults += [f"{name}: scrolls sideways: {area}" for area in sideways(page)]
        shades = {picture.pixel(x, y) for x in range(200, size.width(), 23) for y in range(60, size.height() - 40, 11)}
        assert len(shades) > 12, f"{name} shows next to nothing"
    assert window.size() == size
    assert not faults, "\n".join(faults)
