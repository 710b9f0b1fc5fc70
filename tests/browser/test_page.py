# SPDX-License-Identifier: Apache-2.0
"""A report in Chromium, as people see it: on a phone, on half a screen and on a whole one, light
and dark. ``make test-report``."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import documented
from dutperf.api import results

pytest.importorskip("playwright.sync_api", reason="scripts/setup browser installs it")
pytestmark = pytest.mark.browser

WIDTHS = (360, 800, 1400)
THEMES = ("light", "dark")
INK_RATIO = 0.01
"""Share of a plot's pixels that differ from its background; axes and names alone are more."""
NOTICEABLE = 24
"""Difference of a colour's red, green or blue, of 255."""
OVERLAPS = """() => {
    const shown = element => element.checkVisibility()
    const touch = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1
    const turned = text => Math.abs(parseFloat((text.getAttribute('transform') || '').split('rotate(')[1] || '0')) > 1
    const found = []
    const compare = (elements, where) => elements.forEach((one, index) => elements.slice(index + 1).forEach(other => {
        if (!one.contains(other) && !other.contains(one) && touch(one.getBoundingClientRect(), other.getBoundingClientRect()))
            found.push(`${where}: ${one.textContent.trim().slice(0, 40)} | ${other.textContent.trim().slice(0, 40)}`)
    }))
    compare([...document.querySelectorAll('h1, h2, h3, h4, p, li, nav a, .box, .wire, figure, .scroll, summary')].filter(shown), 'page')
    for (const svg of document.querySelectorAll('.plot svg')) {
        const label = svg.parentElement.getAttribute('aria-label')
        const texts = [...svg.querySelectorAll('text')].filter(shown)
        compare(texts.filter(text => !turned(text)), label)
        const frame = svg.getBoundingClientRect()
        for (const text of texts) {
            const box = text.getBoundingClientRect()
            if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1)
                found.push(`${label}: ${text.textContent} is outside`)
        }
    }
    return found
}"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of four procedures with two frame sizes; a page that fits into one picture."""
    wanted = {name: documented.MEASURED[name] for name in ("throughput", "latency", "pdv", "frame-loss")}
    directory = documented.measure(tmp_path_factory.mktemp("browser") / "suite", documented.a_suite(**wanted))
    return results.write_report(directory)


@pytest.fixture(
    scope="module",
    params=[(width, theme) for width in WIDTHS for theme in THEMES],
    ids=lambda shape: f"{shape[0]}-{shape[1]}",
)
def page(request: pytest.FixtureRequest, browser: Any, report: Path) -> Iterator[Any]:
    """The report with everything unfolded; whatever the browser complains of fails the test."""
    width, theme = request.param
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme, offline=True)
    opened = context.new_page()
    complaints: list[str] = []
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on("console", lambda message: complaints.append(message.text))
    opened.on("requestfailed", lambda failed: complaints.append(failed.url))
    opened.goto(report.as_uri(), timeout=120_000)
    opened.evaluate("document.querySelectorAll('#progress details').forEach(one => { one.open = true })")
    yield opened
    context.close()
    assert complaints == []


def test_nothing_overlaps_and_nothing_sticks_out(page: Any) -> None:
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]
    assert page.evaluate(OVERLAPS) == []


def test_every_plot_has_ink_and_its_curves_have_their_colour(page: Any) -> None:
    boxes = page.evaluate(
        "[...document.querySelectorAll('.plot svg')].map(one => one.getBoundingClientRect()).map(box => [box.x, box.y,"
        " box.right, box.bottom])"
    )
    whole = np.asarray(Image.open(io.BytesIO(page.screenshot(full_page=True, timeout=120_000))).convert("RGB")).astype(
        int
    )
    colour = page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--series-0').trim()")
    wanted = [int(colour[digit : digit + 2], 16) for digit in (1, 3, 5)]
    assert len(boxes) >= 10
    for left, top, right, bottom in ([round(edge) for edge in box] for box in boxes):
        plot = whole[top:bottom, left:right]
        differing = (np.abs(plot - plot[0, 0]).max(axis=2) > NOTICEABLE).mean()
        assert differing > INK_RATIO
        assert (np.abs(plot - wanted).max(axis=2) < NOTICEABLE).any()


def test_text_and_background_differ_enough(page: Any) -> None:
    """WCAG 2.2 asks for a contrast of 4.5."""
    contrast = """selector => {
        const parts = colour => colour.match(/[\\d.]+/g).slice(0, 3).map(Number)
        const light = colour => parts(colour).map(one => one / 255).map(one => one <= .03928 ? one / 12.92 : ((one + .055) / 1.055) ** 2.4)
            .reduce((sum, one, index) => sum + one * [.2126, .7152, .0722][index], 0)
        const element = document.querySelector(selector)
        let behind = element
        while (behind.parentElement && /, 0\\)$|transparent/.test(getComputedStyle(behind).backgroundColor)) behind = behind.parentElement
        const [dark, bright] = [light(getComputedStyle(element).color), light(getComputedStyle(behind).backgroundColor)].sort((a, b) => a - b)
        return (bright + .05) / (dark + .05)
    }"""
    for selector in ("h1", "nav a", "td", ".small", "figcaption", ".box dt", ".whose", "caption"):
        assert page.evaluate(contrast, selector) >= 4.5, selector


def test_the_keyboard_reaches_and_unfolds_everything(page: Any) -> None:
    page.focus("#trials summary")
    page.keyboard.press("Enter")
    assert page.evaluate("document.querySelector('#trials details').open")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Trials of throughput"
    page.keyboard.press("ArrowRight")
    lacking = (
        "[...document.querySelectorAll('.scroll')].filter(one => one.scrollWidth > one.clientWidth && one.tabIndex !=="
        " 0).length"
    )
    assert page.evaluate(lacking) == 0


def test_it_prints_on_a_page_s_width(page: Any) -> None:
    page.emulate_media(media="print")
    assert page.pdf(format="A4").startswith(b"%PDF")
    page.emulate_media(media="screen")
