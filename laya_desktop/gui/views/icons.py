"""Icons and the application's mark, drawn from our own SVG files. Qt main thread.

Our own files and QtSvg instead of an icon-font package: that package took 0.3 s to import and 6 MB of fonts for the
forty signs that the window uses; these take about 1 ms. An icon is drawn in a colour role of the theme; a switch of
theme draws it again, because ``icon`` is asked again on the palette change.
"""

from __future__ import annotations

from functools import lru_cache

from PySide6.QtCore import QByteArray, QRectF, QSize, Qt
from PySide6.QtGui import QIcon, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

from laya_desktop.gui import theme


def icon(name: str, role: str = "secondary", checked_role: str | None = None) -> QIcon:
    """The icon ``resources/icons/NAME.svg`` in a colour role; ``checked_role`` colours it while checked.

    Raises:
        FileNotFoundError: there is no such icon.
    """
    result = QIcon()
    for mode, state, colour_role in (
        (QIcon.Mode.Normal, QIcon.State.Off, role),
        (QIcon.Mode.Normal, QIcon.State.On, checked_role or role),
        (QIcon.Mode.Disabled, QIcon.State.Off, "disabled"),
    ):
        result.addPixmap(_pixmap(name, theme.color(colour_role).name(), 40), mode, state)
    return result


def pixmap(name: str, role: str = "secondary", size_px: int = 16, ratio: float = 2.0) -> QPixmap:
    """The icon as a pixmap of ``size_px`` logical pixels, sharp on screens of that device pixel ratio."""
    result = QPixmap(_pixmap(name, theme.color(role).name(), round(size_px * ratio)))
    result.setDevicePixelRatio(ratio)
    return result


def app_icon() -> QIcon:
    """The application's mark in the sizes that desktops ask for."""
    result = QIcon()
    for size_px in (16, 24, 32, 48, 64, 128, 256):
        result.addPixmap(app_pixmap(size_px, 1.0))
    return result


def app_pixmap(size_px: int, ratio: float = 2.0) -> QPixmap:
    """The application's mark."""
    result = _render(theme.resource("laya-desktop.svg").read_bytes(), round(size_px * ratio))
    result.setDevicePixelRatio(ratio)
    return result


@lru_cache(maxsize=256)
def _pixmap(name: str, colour: str, size_px: int) -> QPixmap:
    source = theme.resource(f"icons/{name}.svg").read_text(encoding="utf-8")
    return _render(source.replace("currentColor", colour).encode(), size_px)


def _render(svg: bytes, size_px: int) -> QPixmap:
    result = QPixmap(QSize(size_px, size_px))
    result.fill(Qt.GlobalColor.transparent)
    painter = QPainter(result)
    QSvgRenderer(QByteArray(svg)).render(painter, QRectF(0, 0, size_px, size_px))
    painter.end()
    return result
