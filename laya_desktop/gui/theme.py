"""Design tokens and how they reach Qt: style, palette, fonts and the one style sheet. Qt main thread.

Views ask for a colour by role (``color("warn")``) when they paint and never write a colour down. ``apply_theme``
switches live: Qt sends every widget a palette change, and a widget that paints by hand repaints on it. Nothing here
knows a widget of ours.
"""

from __future__ import annotations

import string
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFont, QFontDatabase, QPalette
from PySide6.QtWidgets import QApplication

from laya_desktop import paths
from laya_desktop.state.enums import Level, ModelState, NodeState

SPACE_1, SPACE_2, SPACE_3, SPACE_4, SPACE_6, SPACE_8 = 4, 8, 12, 16, 24, 32
"""Spacing in px, in steps of four."""
RADIUS = 8
RADIUS_SMALL = 6
FONT_BODY, FONT_SECONDARY, FONT_SMALL, FONT_FIGURE = 13, 12, 11, 22
"""Type scale in px."""
HEADER_HEIGHT, NAVIGATION_WIDTH, STATUS_HEIGHT, CONTROL_HEIGHT = 48, 176, 28, 30


class Scheme(StrEnum):
    """What the user chose; ``system`` follows the desktop, live."""

    SYSTEM = "system"
    LIGHT = "light"
    DARK = "dark"


class Density(StrEnum):
    """How much room controls and text take."""

    COMFORTABLE = "comfortable"
    COMPACT = "compact"


@dataclass(frozen=True, slots=True)
class Colors:
    """One palette. Every field is a role that ``color`` accepts."""

    background: str
    panel: str
    line: str
    text: str
    secondary: str
    accent: str
    accent_text: str
    """Accent for text, legible on every background of ours."""
    on_accent: str
    accent_hover: str
    selection: str
    tint: str
    """Behind accent text in a pill."""
    field: str
    hover: str
    track: str
    """The empty part of a bar."""
    disabled: str
    calm: str
    watch: str
    warn: str
    critical: str
    warn_tint: str
    critical_tint: str
    grid: str
    series_1: str
    series_2: str
    series_3: str
    series_4: str
    series_5: str
    series_6: str
    """Okabe–Ito, lightened where the background is dark."""


LIGHT = Colors(
    background="#f6f7f9",
    panel="#ffffff",
    line="#dfe3e8",
    text="#1b2430",
    secondary="#5f6b7a",
    accent="#0f7b8a",
    accent_text="#0b6a77",
    on_accent="#ffffff",
    accent_hover="#0c6874",
    selection="#e8f3f5",
    tint="#dff1f3",
    field="#f6f7f9",
    hover="#eef1f4",
    track="#e8ebf0",
    disabled="#a3acb8",
    calm="#1a7f4b",
    watch="#8a6d00",
    warn="#b35900",
    critical="#b3261e",
    warn_tint="#fdf1e3",
    critical_tint="#fdeceb",
    grid="#eceff2",
    series_1="#0072b2",
    series_2="#d55e00",
    series_3="#009e73",
    series_4="#cc79a7",
    series_5="#e69f00",
    series_6="#56b4e9",
)
DARK = Colors(
    background="#14181d",
    panel="#1b2128",
    line="#2c343d",
    text="#e6eaef",
    secondary="#94a1b0",
    accent="#4cc3d2",
    accent_text="#4cc3d2",
    on_accent="#0e1a1d",
    accent_hover="#6fd3df",
    selection="#1f3338",
    tint="#17383d",
    field="#14181d",
    hover="#232b33",
    track="#2a323b",
    disabled="#5b6672",
    calm="#5fd39a",
    watch="#e5c34a",
    warn="#f2a054",
    critical="#ff7a70",
    warn_tint="#35281a",
    critical_tint="#3a2222",
    grid="#262e36",
    series_1="#56b4e9",
    series_2="#e69f00",
    series_3="#3ecf9f",
    series_4="#e6a1c6",
    series_5="#f0e442",
    series_6="#f07f3c",
)
SERIES = ("series_1", "series_2", "series_3", "series_4", "series_5", "series_6")

_colors = LIGHT  # like the palette that Qt keeps for the application: one per process, main thread only
_chosen = Scheme.SYSTEM
_density = Density.COMFORTABLE


def apply_theme(app: QApplication, scheme: Scheme | str = Scheme.SYSTEM, density: Density | None = None) -> None:
    """Give the application its look; call again to switch while it runs. ``density`` None: as it is."""
    global _colors, _chosen, _density
    _chosen, _density = Scheme(scheme), density or _density
    hints = app.styleHints()
    if not app.property("laya_themed"):
        app.setProperty("laya_themed", True)
        app.setStyle("Fusion")
        hints.colorSchemeChanged.connect(lambda _scheme: _on_system_scheme(app))
    native = {Scheme.LIGHT: Qt.ColorScheme.Light, Scheme.DARK: Qt.ColorScheme.Dark}
    hints.setColorScheme(native.get(_chosen, Qt.ColorScheme.Unknown))  # Unknown: follow the desktop
    dark = _chosen is Scheme.DARK or (_chosen is Scheme.SYSTEM and hints.colorScheme() == Qt.ColorScheme.Dark)
    _colors = DARK if dark else LIGHT
    app.setFont(ui_font(_font_px(FONT_BODY)))
    app.setPalette(_palette(_colors))
    app.setStyleSheet(style_sheet(_colors))


@contextmanager
def styled_once() -> Iterator[None]:
    """Widgets that are built meanwhile get the style sheet once, in the end.

    Otherwise Qt applies it to a whole subtree each time that it is put into another widget: half of the start.
    """
    app = QApplication.instance()
    if not isinstance(app, QApplication):
        yield
        return
    sheet = app.styleSheet()
    app.setStyleSheet("")
    try:
        yield
    finally:
        app.setStyleSheet(sheet)


def _on_system_scheme(app: QApplication) -> None:
    wanted = DARK if app.styleHints().colorScheme() == Qt.ColorScheme.Dark else LIGHT
    if _chosen is Scheme.SYSTEM and wanted is not _colors:
        apply_theme(app, Scheme.SYSTEM)


def chosen_scheme() -> Scheme:
    """What was last applied: system, light or dark."""
    return _chosen


def chosen_density() -> Density:
    """What was last applied."""
    return _density


def _font_px(size_px: int) -> int:
    return size_px - 1 if _density is Density.COMPACT else size_px


def is_dark() -> bool:
    """True while the dark palette is shown."""
    return _colors is DARK


def color(role: str, alpha: float = 1.0) -> QColor:
    """The colour of a role of ``Colors`` in the palette that is shown now; ``alpha`` 0.0 to 1.0.

    Raises:
        AttributeError: there is no such role.
    """
    value = QColor(getattr(_colors, role))
    if alpha < 1.0:
        value.setAlphaF(alpha)
    return value


def level_role(level: Level) -> str:
    """The colour role of a forecast's level; calm is said in secondary text, not in green."""
    return "secondary" if level is Level.CALM else level.value


def level_symbol(level: Level) -> str:
    """A sign that goes with the level's colour, so that colour is never alone; empty when calm."""
    return {Level.WATCH: "△", Level.WARN: "▲", Level.CRITICAL: "◆"}.get(level, "")


def node_tone(state: NodeState) -> str:
    """The pill tone of a node state."""
    return {NodeState.RUNNING: "calm", NodeState.FAILED: "critical", NodeState.STOPPED: "neutral"}.get(state, "watch")


def model_tone(state: ModelState) -> str:
    """The pill tone of a model state."""
    tones = {ModelState.READY: "calm", ModelState.FAILED: "critical", ModelState.UNLOADED: "neutral"}
    return tones.get(state, "watch")


def ui_font(size_px: int = FONT_BODY, *, bold: bool = False) -> QFont:
    """The system's interface font with figures of equal width, so that live numbers do not jitter."""
    font = QFontDatabase.systemFont(QFontDatabase.SystemFont.GeneralFont)
    font.setPixelSize(size_px)
    if bold:
        font.setWeight(QFont.Weight.DemiBold)
    font.setFeature(QFont.Tag("tnum"), 1)
    return font


def mono_font(size_px: int = FONT_SECONDARY) -> QFont:
    """The system's monospace font, for paths, addresses and YAML."""
    font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
    font.setStyleHint(QFont.StyleHint.Monospace)
    font.setPixelSize(size_px)
    return font


def resource(name: str) -> Path:
    """A bundled file, e.g. ``icons/save.svg``."""
    return paths.resources_dir() / name


def style_sheet(colors: Colors) -> str:
    """The style sheet with ``$role`` replaced by colours and ``$name`` by the tokens above."""
    tokens = {f.name: getattr(colors, f.name) for f in fields(colors)}
    tokens |= {
        "radius": f"{RADIUS}px",
        "radius_small": f"{RADIUS_SMALL}px",
        "font_body": f"{_font_px(FONT_BODY)}px",
        "font_secondary": f"{_font_px(FONT_SECONDARY)}px",
        "font_small": f"{FONT_SMALL}px",
        "font_figure": f"{FONT_FIGURE}px",
        "mono": f'"{QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont).family()}"',
        "icons": resource("icons").as_posix(),
        "tone": "dark" if colors is DARK else "light",
    }
    source = resource("style.qss").read_text(encoding="utf-8")
    if _density is Density.COMPACT:
        source += resource("compact.qss").read_text(encoding="utf-8")
    return string.Template(source).substitute(tokens)


def _palette(colors: Colors) -> QPalette:
    palette = QPalette()
    roles = QPalette.ColorRole
    for role, value in {
        roles.Window: colors.background,
        roles.WindowText: colors.text,
        roles.Base: colors.panel,
        roles.AlternateBase: colors.background,
        roles.Text: colors.text,
        roles.PlaceholderText: colors.secondary,
        roles.Button: colors.panel,
        roles.ButtonText: colors.text,
        roles.BrightText: colors.critical,
        roles.ToolTipBase: colors.panel,
        roles.ToolTipText: colors.text,
        roles.Highlight: colors.selection,
        roles.HighlightedText: colors.text,
        roles.Link: colors.accent,
        roles.LinkVisited: colors.accent,
        roles.Accent: colors.accent,
        roles.Light: colors.panel,
        roles.Midlight: colors.hover,
        roles.Mid: colors.line,
        roles.Dark: colors.line,
        roles.Shadow: colors.line,
    }.items():
        palette.setColor(role, QColor(value))
    for role in (roles.WindowText, roles.Text, roles.ButtonText):
        palette.setColor(QPalette.ColorGroup.Disabled, role, QColor(colors.disabled))
    return palette
