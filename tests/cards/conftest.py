# SPDX-License-Identifier: Apache-2.0
"""Guests with network cards, one for each model, and the watch over the memory that their cards
reach for."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from cards import image, machine
from cards.machine import MODELS, Guest, Machine

HERE = Path(__file__).parent
ORDER = ("test_documents", *MODELS, "test_networks", "test_stamps")
"""The longest group first."""
_REFUSED_DMA = re.compile(r"DMAR: \[DMA .*? fault addr .*")
_AT_THE_START = re.compile(r"\[DMA Read .*fault addr 0x0 ")
"""QEMU's vmxnet3 reads address 0 when its port is started, whatever the driver gave it: before a
trial, and no frame."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that share a guest follow each other, and go to one process where several share the
    work (``--dist loadgroup``)."""
    groups = {item: _group(item) for item in items if item.path.parent == HERE}
    for item, group in groups.items():
        item.add_marker(pytest.mark.xdist_group(group))
    places = [place for place, item in enumerate(items) if item in groups]
    for place, item in zip(
        places, sorted(groups, key=lambda item: (ORDER.index(groups[item]), item.path.stem)), strict=True
    ):
        items[place] = item


def _group(item: pytest.Item) -> str:
    """The model of the guest's cards, or the file whose tests have guests of their own."""
    called: dict[str, str] = item.callspec.params if hasattr(item, "callspec") else {}
    return called.get("model") or {"test_obstacles": "e1000e", "test_virtio": "virtio"}.get(
        item.path.stem, item.path.stem
    )


@pytest.fixture(scope="session")
def guest_image(tmp_path_factory: pytest.TempPathFactory) -> image.Image:
    """What guests boot."""
    return image.build(tmp_path_factory.mktemp("guest"))


class Guests:
    """At most one machine at a time: each takes all of two cores while its engine sends."""

    def __init__(self, booted: image.Image) -> None:
        self._image = booted
        self._machine: Machine | None = None
        self._guest: Guest | None = None
        self._stack = contextlib.ExitStack()

    def of(self, wanted: Machine) -> Guest:
        """The running guest of that description, booted if need be, its cards at vfio-pci, its
        links up."""
        if wanted != self._machine or self._guest is None:
            self.stop()
            self._guest = self._stack.enter_context(machine.running(wanted, self._image))
            self._machine = wanted
        return self._guest

    def stop(self) -> None:
        """End the guest that runs."""
        self._guest = None
        self._stack.close()


@pytest.fixture(scope="package")
def guests(guest_image: image.Image) -> Iterator[Guests]:
    """Boots guests. The last one ends with these tests: an idle guest takes a tenth of a core from
    whatever is measured beside it."""
    made = Guests(guest_image)
    yield made
    made.stop()


@pytest.fixture(scope="session", params=list(MODELS))
def model(request: pytest.FixtureRequest) -> str:
    """A model of card."""
    name: str = request.param
    return name


@pytest.fixture
def guest(model: str, guests: Guests) -> Iterator[Guest]:
    """A machine with two cards of a model, joined by a hub."""
    with watched(guests.of(Machine(model))) as ready:
        yield ready


@contextlib.contextmanager
def watched(ready: Guest) -> Iterator[Guest]:
    """``ready`` with its cards at vfio-pci; no card may reach for memory that is not its engine's."""
    ready.stop_engine()  # of the test before: while it holds a card, no driver gets that
    ready.run("bind vfio-pci " + " ".join(ready.cards))
    said = len(ready.console())
    ready.trials.clear()
    yield ready
    console = ready.console()
    refused = _REFUSED_DMA.findall(console[said:])
    if ready.machine.model == "vmxnet3":
        refused = [line for line in refused if not _AT_THE_START.search(line)]
    assert not refused
    assert not [line for trial in ready.trials for line in _REFUSED_DMA.findall(console[trial])]
