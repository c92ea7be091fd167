"""Colours can be read, and the style sheet is whole."""

from __future__ import annotations

import re

import pytest
from PySide6.QtGui import QColor

from laya_desktop.gui import theme
from laya_desktop.gui.views import icons


def luminance(name):
    def linear(value):
        return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4

    colour = QColor(name)
    red, green, blue = (linear(c) for c in (colour.redF(), colour.greenF(), colour.blueF()))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("colours", [theme.LIGHT, theme.DARK], ids=["light", "dark"])
@pytest.mark.parametrize(
    ("text", "background"),
    [
        *[(t, b) for t in ("text", "secondary", "accent_text") for b in ("background", "panel", "selection", "field")],
        *[(t, b) for t in ("calm", "watch", "warn", "critical") for b in ("background", "panel")],
        ("accent_text", "tint"),
        ("on_accent", "accent"),
        ("on_accent", "accent_hover"),
        ("text", "warn_tint"),
        ("text", "critical_tint"),
        ("text", "hover"),
    ],
)
def test_text_contrast_is_at_least_4_5(colours, text, background):
    assert contrast(getattr(colours, text), getattr(colours, background)) >= 4.5


@pytest.mark.parametrize("colours", [theme.LIGHT, theme.DARK], ids=["light", "dark"])
@pytest.mark.parametrize("series", ["series_1", "series_2", "series_3", "series_4"])
def test_lines_in_use_stand_out_from_the_panel(colours, series):
    assert contrast(getattr(colours, series), colours.panel) >= 2.9


@pytest.mark.parametrize("colours", [theme.LIGHT, theme.DARK], ids=["light", "dark"])
def test_style_sheet_has_no_token_left_and_every_image_exists(qapp, colours):
    sheet = theme.style_sheet(colours)
    assert "$" not in sheet
    images = re.findall(r"url\(([^)]+)\)", sheet)
    assert images
    assert all(theme.resource(f"icons/{name.rsplit('/', 1)[1]}").is_file() for name in images)


def test_system_scheme_follows_the_desktop(qapp):
    theme.apply_theme(qapp, theme.Scheme.SYSTEM)
    assert theme.chosen_scheme() is theme.Scheme.SYSTEM
    assert theme.is_dark() == (qapp.styleHints().colorScheme().name == "Dark")


def test_icons_are_drawn_in_the_roles_colour(qapp):
    image = icons.pixmap("stop", "critical", 32).toImage()
    drawn = {
        image.pixelColor(x, y).name() for x in range(64) for y in range(64) if image.pixelColor(x, y).alpha() == 255
    }
    assert theme.color("critical").name() in drawn


def test_every_icon_file_can_be_drawn(qapp):
    names = [p.stem for p in theme.resource("icons").glob("*.svg") if not p.stem.endswith(("-light", "-dark"))]
    assert len(names) > 20
    for name in names:
        image = icons.pixmap(name).toImage()
        assert any(image.pixelColor(x, y).alpha() for x in range(0, 32, 2) for y in range(0, 32, 2)), name
    assert not icons.app_icon().isNull()
