# SPDX-License-Identifier: Apache-2.0
"""``dutperf serve`` in Chromium, against real measurements: a plan is started, watched, interrupted and finished in the
page; on a phone and a screen, light and dark, by keyboard. Root only. ``make test-report``.

The screenshots of docs/ are made here: ``SCREENSHOTS=docs/screenshots``.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import documented
from dutperf.store import Store

from .test_page import THEMES

pytest.importorskip("playwright.sync_api", reason="scripts/setup browser installs it")
pytestmark = [pytest.mark.browser, pytest.mark.root]

PLAN = """\
lab: kernel-ipv4
lab-options: {limit_fps: 20000}
all: {frame-sizes: [84, 512], duration: 1, drain: 0.2, repetitions: 3}
procedures:
  throughput: {max-rate: 40000, resolution: 1000}
  latency: {rate: 5k, tag-after: 0.2, tags: 500}
"""
PHONE, SCREEN = (360, 740), (1280, 900)
LONG_MS = 240_000
TOO_WIDE = "document.documentElement.scrollWidth > document.documentElement.clientWidth + 1"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The address with its token, and the folder of its results."""
    folder = tmp_path_factory.mktemp("serve")
    (folder / "results").mkdir()
    pdv = documented.measure(folder / "simulated", documented.a_suite(pdv=documented.MEASURED["pdv"]))
    with Store(folder / "store.sqlite") as store:  # figures that no busy machine takes away
        store.add(pdv)
    argv = [sys.executable, "-m", "dutperf", "serve", "results", "--port", "0", "--store", "store.sqlite"]
    with subprocess.Popen(argv, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip(), folder
        process.terminate()


def opened(browser: Any, address: str, size: tuple[int, int] = SCREEN, theme: str = "light") -> Any:
    """A page that fails the test if anything in it goes wrong, or asks another server."""
    context = browser.new_context(viewport={"width": size[0], "height": size[1]}, color_scheme=theme)
    page = context.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda one: wrong.append(one.text) if one.type == "error" else None)
    page.on(
        "request",
        lambda one: (
            None if one.url.startswith("http://127.0.0.1:") or one.url.startswith("data:") else wrong.append(one.url)
        ),
    )
    page.wrong = wrong
    page.goto(address)
    return page


def keep(page: Any, name: str) -> None:
    if folder := os.environ.get("SCREENSHOTS"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=f"{folder}/{name}.png", full_page=False)


def test_a_plan_is_started_watched_interrupted_and_finished(browser: Any, served: tuple[str, Path]) -> None:
    address, folder = served
    page = opened(browser, address)
    page.get_by_label("Or a plan").fill(PLAN)
    page.locator("#plan-form").get_by_label("Name").fill("a day's plan")
    page.get_by_role("button", name="Start the plan").click()
    page.wait_for_url("**/runs/*")
    page.locator("#state.running").wait_for(timeout=LONG_MS)
    page.locator("#trials tr").nth(3).wait_for(timeout=LONG_MS)
    page.locator("#directions dl").first.wait_for(timeout=LONG_MS)
    assert re.search(r"throughput, .*trying [\d,]+ frames/s", page.locator("#where").inner_text())
    assert page.locator("#rates canvas").count() == 1
    keep(page, "run")
    page.get_by_role("button", name="Stop").click()
    page.locator("#state.stopped").wait_for(timeout=LONG_MS)
    before = page.locator("#trials tr").count()
    page.get_by_role("button", name="Resume").click()
    page.locator("#state.complete").wait_for(timeout=LONG_MS)
    assert page.locator("#trials tr").count() > before
    page.locator("#headline b").first.wait_for()
    assert re.match(r"[\d,]+ frames/s per direction \(84 bytes\), ", page.locator("#headline b").first.inner_text())
    assert page.locator("#no-delays").is_hidden(), "latency has delays"
    keep(page, "finished")
    page.get_by_role("link", name="Report").click()
    page.get_by_role("heading", level=1).wait_for()
    assert "Linux" in page.content()
    assert page.wrong == []
    with Store(folder / "store.sqlite") as store:
        added, _ = store.add(folder / "results")
    assert {one.procedure for one in added} == {"throughput", "latency"}
    assert all(one.complete for one in added)


def test_the_rate_of_a_trial_is_changed_while_it_runs(browser: Any, served: tuple[str, Path]) -> None:
    address, folder = served
    page = opened(browser, address)
    if page.locator("details.start:not([open])").count():
        page.get_by_text("Start a run").click()
    page.get_by_label("Procedure").select_option("traffic")
    page.get_by_label("Test setup").select_option("lab:kernel-ipv4")
    page.locator("#form").get_by_label("Name").fill("by hand")
    page.locator("#option-rate").fill("2k")
    page.locator("#option-duration").fill("120")
    page.get_by_role("button", name="Start", exact=True).click()
    page.wait_for_url("**/runs/*")
    rate = page.get_by_label("Rate per direction")
    rate.wait_for(timeout=LONG_MS)
    page.get_by_text("part 1 at 2,000 frames/s").wait_for(timeout=LONG_MS)
    page.locator("#directions dl").first.wait_for(timeout=LONG_MS)
    rate.fill("5k")
    rate.press("Enter")
    page.get_by_text("part 2 at 5,000 frames/s").wait_for(timeout=LONG_MS)
    page.locator("#trials tr").first.wait_for(timeout=LONG_MS)
    rate.fill("10%")
    page.get_by_role("button", name="Change the rate").click()
    page.get_by_text("a rate in % needs the media's speed").wait_for(timeout=LONG_MS)
    page.wait_for_timeout(1500)
    keep(page, "by-hand")
    page.get_by_role("button", name="End the traffic").click()
    page.locator("#state.complete").wait_for(timeout=LONG_MS)
    assert not rate.is_visible()
    assert page.locator("#no-delays").is_hidden(), "every frame is stamped"
    [directory] = (folder / "results").glob("*by-hand")
    summary = json.loads((directory / "summary.json").read_text())
    assert [one["load"]["value"] for one in summary["points"][0]["rates"]] == [2_000, 5_000]
    assert [one for one in page.wrong if "409" not in one] == []


def test_a_wrong_answer_is_told_in_the_form(browser: Any, served: tuple[str, Path]) -> None:
    page = opened(browser, served[0])
    if page.locator("details.start:not([open])").count():
        page.get_by_text("Start a run").click()
    page.get_by_label("Procedure").select_option("latency")
    page.get_by_label("Test setup").select_option("lab:kernel-ipv4")
    page.get_by_label("Options:").fill("frame size")
    page.locator("#option-frame-size").fill("many")
    page.get_by_role("button", name="Start", exact=True).click()
    page.locator("#error").wait_for()
    assert "frame-size" in page.locator("#error").inner_text()


def test_by_keyboard_alone(browser: Any, served: tuple[str, Path]) -> None:
    page = opened(browser, served[0])
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "To the content"
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.tagName"))
    assert {"A", "SUMMARY"} <= reached or {"A", "procedure"} <= reached


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("size", [PHONE, SCREEN])
def test_every_page_fits(browser: Any, served: tuple[str, Path], size: tuple[int, int], theme: str) -> None:
    address, _ = served
    page = opened(browser, address, size, theme)
    root = address.partition("?")[0]
    keep(page, f"runs-{theme}-{size[0]}")
    assert not page.evaluate(TOO_WIDE), "runs"
    run = page.locator("tbody a").first.get_attribute("href")
    for name, path in (("live", run), ("store", "store")):
        page.goto(root + str(path).lstrip("/"))
        page.wait_for_timeout(1500)
        assert not page.evaluate(TOO_WIDE), path
        keep(page, f"{name}-{theme}-{size[0]}")
    page.goto(f"{root}store?procedure=pdv")
    page.locator("tbody th a").first.click()
    page.wait_for_load_state("load")
    assert not page.evaluate(TOO_WIDE), page.url
    page.get_by_role("link", name="History").click()
    page.locator(".history canvas").first.wait_for()
    assert not page.evaluate(TOO_WIDE), page.url
    keep(page, f"history-{theme}-{size[0]}")
    assert page.wrong == []
