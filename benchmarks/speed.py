# SPDX-License-Identifier: Apache-2.0
"""How fast one core sends and receives, against dpdk-testpmd on the same core in the same minutes:
``make bench``.

Each case is timed several times, each time right after the reference; what counts is the median of
the ratios, which holds on a machine whose clock and neighbours change. Prints a table and writes
``bench.json``: a list of {name, value, unit, reference, reference_value, ratio}.

Where one core sends what another receives, how many lines of memory the one hands over to the other
just then is told beside each figure.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parent))

from cases import CASES, Case
from testpmd import PROGRAM, Testpmd

from dutperf import lab
from dutperf.engine.client import EngineCommand, EngineTester
from dutperf.setup import configuration
from dutperf.setup.configuration import Setup
from dutperf.setup.ports import open_request

EACH_OF_TWO = Case(f"{PROGRAM}, on each of two null ports")
REFERENCE = f"{PROGRAM} txonly, burst 32, null port"
HUGE_PAGES = Path("/proc/sys/vm/nr_hugepages")
LINE_HANDOVER = Path("build/engine/line-handover")


@dataclass(frozen=True)
class Pair:
    """Frames/s of a case, and of the reference beside it."""

    value: float
    reference: float
    lines: tuple[float, float] | None = None
    """Lines/s that one core handed over to the other just before and after; None: each core
    receives what it sent."""


@dataclass(frozen=True)
class Timed:
    """A case, round by round."""

    case: Case
    pairs: tuple[Pair, ...]
    beside: Timed | None = None
    """The same traffic without connections, in one stream, on the same engines."""

    @property
    def ratio(self) -> float:
        """The median over the pairs."""
        return median(pair.value / pair.reference for pair in self.pairs)

    @property
    def ratio_beside(self) -> float | None:
        """The median over the rounds; None: there is nothing beside it."""
        if self.beside is None:
            return None
        rounds = zip(self.pairs, self.beside.pairs, strict=True)
        return median(pair.value / beside.value for pair, beside in rounds)

    def as_json(self) -> dict[str, Any]:
        """An entry of bench.json."""
        value, reference = median(pair.value for pair in self.pairs), median(pair.reference for pair in self.pairs)
        entry = {
            "name": self.case.name,
            "value": round(value),
            "unit": f"frames/s {self.case.counts}",
            "reference": REFERENCE,
            "reference_value": round(reference),
            "ratio": round(self.ratio, 3),
        }
        if self.ratio_beside is not None:
            entry |= {"beside": self.case.beside, "ratio_beside": round(self.ratio_beside, 3)}
        return entry


def main() -> None:
    """Times every case whose name contains the word given, writes the file and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", metavar="WORD", help="cases whose name contains this")
    parser.add_argument("--rounds", type=int, default=5, metavar="COUNT", help="pairs of a case and the reference")
    parser.add_argument("--out", type=Path, default=Path("bench.json"))
    chosen = parser.parse_args()
    wanted = {name for case in CASES if chosen.only in case.name for name in (case.name, case.beside)}
    cases = [case for case in CASES if case.name in wanted]
    cores = sorted(os.sched_getaffinity(0))
    if not cases or len(cores) < 2:
        sys.exit("no such case" if not cases else "two cores are needed: one that is measured, one for everything else")
    timed = [
        one
        for ports in dict.fromkeys(case.ports for case in cases)
        for one in _timed([case for case in cases if case.ports == ports], cores, chosen.rounds)
    ]
    of_two = Timed(
        EACH_OF_TWO, tuple(_each_of_two_ports(cores) for _ in range(3 * chosen.rounds))
    )  # a whole column is divided by it
    chosen.out.write_text(json.dumps([one.as_json() for one in (*timed, of_two)], indent=2) + "\n")
    _show(timed, of_two)


def _timed(cases: list[Case], cores: list[int], rounds: int) -> Iterator[Timed]:
    """Those of one kind of ports. Each round has programs of its own: how fast one is depends on
    where its memory came to lie, by up to a quarter."""
    for engine in sorted({(case.cores, case.queues) for case in cases}):
        alike = [case for case in cases if (case.cores, case.queues) == engine]
        pairs = [_round(alike, cores, number) for number in range(rounds)]
        timed: dict[str | None, Timed] = {}
        for case, of_case in zip(alike, zip(*pairs, strict=True), strict=True):
            timed[case.name] = Timed(case, of_case, timed.get(case.beside))
        yield from timed.values()


def _round(cases: list[Case], cores: list[int], number: int) -> list[Pair]:
    huge_pages = int(HUGE_PAGES.read_text()) > 0
    own = cores[-cases[0].cores :]
    with engine_of(cases[0], own) as tester, Testpmd(cores[-1], cores[0], huge_pages=huge_pages) as reference:
        return [_pair(tester, case, number, own, reference) for case in cases]


def _pair(tester: EngineTester, case: Case, number: int, cores: list[int], reference: Testpmd) -> Pair:
    if not case.between_cores:
        return Pair(_frames_per_second(tester, case, number), reference.measure())
    before, value, after = _lines_per_second(cores), _frames_per_second(tester, case, number), _lines_per_second(cores)
    return Pair(value, reference.measure(), (before, after))


def _each_of_two_ports(cores: list[int]) -> Pair:
    """The reference with two ports on its core, by which it is often quoted, and as it is used
    here."""
    huge_pages = int(HUGE_PAGES.read_text()) > 0
    with (
        Testpmd(cores[-1], cores[0], huge_pages=huge_pages, ports=2) as two,
        Testpmd(cores[-1], cores[0], huge_pages=huge_pages) as reference,
    ):
        return Pair(two.measure(), reference.measure())


def _lines_per_second(cores: list[int]) -> float:
    return float(subprocess.run([LINE_HANDOVER, *map(str, cores)], check=True, capture_output=True, text=True).stdout)


def _frames_per_second(tester: EngineTester, case: Case, number: int) -> float:
    if (opening := case.opening(number)) is not None:
        tester.run(opening)
    directions = tester.run(case.trial(number)).all_directions().values()
    return sum(float(getattr(counts, case.counts)) / counts.send_time_s for counts in directions)


@contextmanager
def engine_of(case: Case, cores: list[int]) -> Iterator[EngineTester]:
    with _setup(case) as setup:
        several = {} if case.queues == 1 else {"queues": case.queues}
        request = open_request(setup, 1518) | {"cores": cores} | several
        with EngineTester(EngineCommand.find((), setup.engine.netns), request) as tester:
            tester.environment()
            yield tester


@contextmanager
def _setup(case: Case) -> Iterator[Setup]:
    if case.ports in ("null", "ring"):
        sides = {"left": ("198.18.0.2/24", "2001:2::2/64"), "right": ("198.19.0.2/24", "2001:2:0:8000::2/64")}
        yield configuration.parse(
            {
                name: {"port": case.ports, "version": 4, "ipv4": four, "ipv6": six}
                for name, (four, six) in sides.items()
            },
            "benchmark",
        )
        return
    with lab.bring_up("loopback", {}) as mapping:
        yield configuration.parse(_through(case.ports, mapping), "benchmark")


def _through(driver: str, mapping: Mapping[str, Any]) -> dict[str, Any]:
    """The same cable, but by another driver."""
    sides = {name: {**mapping[name], "port": f"{driver}:{mapping[name]['port']}"} for name in ("left", "right")}
    return {**mapping, **sides}


def _shown(figure: float | None, digits: int) -> str:
    return "" if figure is None else f"{figure:.{digits}f}"


def _show(timed: list[Timed], of_two: Timed) -> None:
    table = Table(title=f"against {REFERENCE}, on the same core", title_justify="left")
    columns = (
        "",
        "Mframes/s",
        "reference",
        "ratio",
        "aimed at",
        "to each of two ports",
        "to one stream without",
        "aimed at",
    )
    for column in columns:
        table.add_column(column, justify="left" if not column else "right")
    for one in timed:
        entry, goal = one.as_json(), one.case.goal
        millions = (f"{entry['value'] / 1e6:.2f}", f"{entry['reference_value'] / 1e6:.1f}")
        ratios = (f"{one.ratio:.2f}", _shown(goal, 2), f"{one.ratio / of_two.ratio:.2f}")
        beside = (one.ratio_beside, one.case.beside_goal)
        table.add_row(one.case.name, *millions, *ratios, _shown(beside[0], 2), _shown(beside[1], 1))
    console = Console(width=max(140, Console().width))
    console.print(table)
    each = of_two.as_json()["value"] / 1e6
    console.print(
        f"With two null ports on its core {PROGRAM} sends {each:.1f} Mframes/s on each, {of_two.ratio:.2f} times what"
        " it sends on one alone."
    )
    for one in timed:
        by_round = [
            f"{pair.value / 1e6:.1f} ({pair.lines[0] / 1e6:.0f}, {pair.lines[1] / 1e6:.0f})"
            for pair in one.pairs
            if pair.lines is not None
        ]
        if by_round:
            console.print(f"{one.case.name}, by round, Mframes/s: {'; '.join(by_round)}", highlight=False)
            console.print(
                "(In brackets: million lines of memory a second that the one core handed over to the other just before"
                " and after.)"
            )


if __name__ == "__main__":
    main()
