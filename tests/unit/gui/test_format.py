"""Numbers as people read them."""

from __future__ import annotations

import math

import pytest

from laya_desktop.gui import format as fmt


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (math.nan, "–"),
        (0, "0 GB"),
        (512, "512 B"),
        (3_000, "3 kB"),
        (94_000_000, "94 MB"),
        (999_400_000, "999 MB"),
        (999_600_000, "1 GB"),
        (22_800_000_000, "22.8 GB"),
        (64_000_000_000, "64 GB"),
        (1_500_000_000_000, "1,500 GB"),
    ],
)
def test_size(value, text):
    assert fmt.size(value) == text


def test_size_of_needs_a_total():
    assert fmt.size_of(41_200_000_000, 64_000_000_000) == "41.2 of 64 GB"
    assert fmt.size_of(None, 64_000_000_000) == "– of 64 GB"
    assert fmt.size_of(41_200_000_000, None) == "–"


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0.4, "0 µs"), (341, "341 µs"), (999.6, "1.0 ms"), (1_240, "1.2 ms"), (2.5e6, "2.5 s")],
)
def test_micros(value, text):
    assert fmt.micros(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0, "0 ms"),
        (0.0004, "0.4 ms"),
        (0.21, "210 ms"),
        (0.9996, "1.0 s"),
        (4.2, "4.2 s"),
        (9.97, "10 s"),
        (45, "45 s"),
        (59.97, "1 min"),
        (200, "3 min 20 s"),
        (3599.7, "1 h"),
        (7500, "2 h 5 min"),
        (273_600, "3 d 4 h"),
    ],
)
def test_seconds(value, text):
    assert fmt.seconds(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0, "0 tokens/s"), (8.24, "8.2 tokens/s"), (83.4, "83 tokens/s"), (9.96, "10 tokens/s")],
)
def test_rate(value, text):
    assert fmt.rate(value) == text


def test_rate_without_unit():
    assert fmt.rate(1234.0, "") == "1,234"


def test_counts():
    assert fmt.count(12_904) == "12,904"
    assert fmt.count(None) == "–"
    assert fmt.counted(1, "unsaved change") == "1 unsaved change"
    assert fmt.counted(2, "unsaved change") == "2 unsaved changes"
    assert fmt.counted(1200, "token") == "1,200 tokens"


@pytest.mark.parametrize(("value", "text"), [(None, "–"), (0, "0 %"), (0.2, "<1 %"), (71.4, "71 %"), (100, "100 %")])
def test_percent(value, text):
    assert fmt.percent(value) == text


def test_share_and_temperature():
    assert fmt.share(0.714) == "71 %"
    assert fmt.share(None) == "–"
    assert fmt.temperature(61.7) == "62 °C"
    assert fmt.temperature(None) == "–"


@pytest.mark.parametrize(
    ("past_s", "text"),
    [(0.2, "now"), (3, "3 s ago"), (59.8, "1 min ago"), (120, "2 min ago"), (18_000, "5 h ago"), (300_000, "3 d ago")],
)
def test_age(past_s, text):
    assert fmt.age(1000.0, 1000.0 + past_s) == text


def test_age_unknown():
    assert fmt.age(None, 1000.0) == "–"


@pytest.mark.parametrize(("value", "text"), [(0, "0"), (2.5, "2.5"), (40, "40"), (1000, "1k"), (1.2e6, "1.2M")])
def test_axis(value, text):
    assert fmt.axis(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0, "0 s"), (8.4, "8 s"), (44, "45 s"), (58, "1 min"), (170, "3 min"), (7500, "2 h 5 min")],
)
def test_countdown(value, text):
    assert fmt.countdown(value) == text
