"""Icons in the sizes that systems ask for, from resources/laya-desktop.svg: PNG, .ico (Windows) and .icns (macOS).

Needs PySide6. Both container formats hold PNG files as they are, with a table in front.
"""

from __future__ import annotations

import os
import struct
import sys
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QRectF
from PySide6.QtGui import QGuiApplication, QImage, QPainter
from PySide6.QtSvg import QSvgRenderer

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "resources" / "laya-desktop.svg"
SIZES = (16, 24, 32, 48, 64, 128, 256, 512)
_ICO_SIZES = (16, 24, 32, 48, 64, 128, 256)
_ICNS_TYPES = {16: b"icp4", 32: b"icp5", 64: b"icp6", 128: b"ic07", 256: b"ic08", 512: b"ic09"}


def render(size: int) -> bytes:
    """The icon as a PNG of that many pixels a side."""
    image = QImage(size, size, QImage.Format.Format_ARGB32_Premultiplied)
    image.fill(0)
    painter = QPainter(image)
    QSvgRenderer(str(SOURCE)).render(painter, QRectF(0, 0, size, size))
    painter.end()
    data = QByteArray()
    buffer = QBuffer(data)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    image.save(buffer, "PNG")
    return bytes(data.data())


def ico(pictures: dict[int, bytes]) -> bytes:
    """A Windows icon file."""
    chosen = [(size, pictures[size]) for size in _ICO_SIZES]
    offset = 6 + 16 * len(chosen)
    table, body = struct.pack("<HHH", 0, 1, len(chosen)), b""
    for size, png in chosen:
        table += struct.pack("<BBBBHHII", size % 256, size % 256, 0, 0, 1, 32, len(png), offset + len(body))
        body += png
    return table + body


def icns(pictures: dict[int, bytes]) -> bytes:
    """A macOS icon file."""
    body = b"".join(
        kind + struct.pack(">I", len(pictures[size]) + 8) + pictures[size] for size, kind in _ICNS_TYPES.items()
    )
    return b"icns" + struct.pack(">I", len(body) + 8) + body


def main() -> int:
    """Write them all into the folder that is named."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    application = QGuiApplication.instance() or QGuiApplication([])
    pictures = {size: render(size) for size in SIZES}
    for size, png in pictures.items():
        (folder / f"laya-desktop-{size}.png").write_bytes(png)
    (folder / "laya-desktop.ico").write_bytes(ico(pictures))
    (folder / "laya-desktop.icns").write_bytes(icns(pictures))
    del application
    return 0


if __name__ == "__main__":
    sys.exit(main())
