# SPDX-License-Identifier: Apache-2.0
"""Transition technologies compared: throughput, latency, delay variation and loss of each that runs on one machine, of
both devices in a row and of one alone.

Measures labs one after the other, and writes a page (``transition.md``) with each chain drawn. Root only;
``run.py --help``.
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tabulate import tabulate

import dutperf

OVERLOAD = 1.2
"""Offered for the loss, of the throughput."""
QUICK: dict[str, Any] = {"repetitions": 1, "drain_s": 0.3}
HOW_TO_READ = (
    f"Throughput: frames/s per direction without loss. Latency and PDV are those at the throughput, of the slower"
    f" direction, and include the tester's own sending and receiving. Loss: of {OVERLOAD:.0%} of the throughput. In"
    " brackets: the tester or the machine was the limit, so the DUT may do more. A dash: not measured, or no trial was"
    " valid."
)
EMULATED = (
    "Their DUTs run on the kernel of an emulated machine: their figures say which of them costs more there, not how"
    " fast they are."
)


@dataclass(frozen=True)
class Chain:
    """DUTs of a lab, and what is between them."""

    technology: str
    kind: str
    """In RFC 8219 section 1.3."""
    lab: str
    drawn: tuple[str, ...]
    """What is on each link, and each device, from left to right."""
    options: Mapping[str, str] = field(default_factory=dict, hash=False)
    initial_fps: int = 20_000
    """Where the search begins."""
    emulated: bool = False
    forward: bool = False
    """Whether frames go forward only: a NAT44 has no connections for others."""

    @property
    def name(self) -> str:
        """Of its directory."""
        return f"{self.lab}-alone" if self.options else self.lab

    @property
    def form(self) -> str:
        """How many devices there are."""
        return "one" if len(self.drawn) == 3 else "two"

    def picture(self) -> str:
        """From the tester's left port to its right one."""
        middle = " ─ ".join(f"[{one}]" if number % 2 else one for number, one in enumerate(self.drawn))
        return f"tester ─ {middle} ─ tester"


def both_and_one(technology: str, kind: str, lab: str, drawn: tuple[str, ...], **more: Any) -> tuple[Chain, Chain]:
    """A lab in its dual and in its single form, which ends behind the left device."""
    return (
        Chain(technology, kind, lab, drawn, **more),
        Chain(technology, kind, lab, drawn[:3], {"end": "left"}, **more),
    )


emulated = partial(Chain, initial_fps=2_000, emulated=True)
CHAINS = (
    Chain("router", "no translation", "kernel-ipv4", ("IPv4", "router", "IPv4"), initial_fps=100_000),
    Chain("SIIT", "single translation", "tayga-siit", ("IPv6", "TAYGA", "IPv4")),
    *both_and_one("464XLAT", "double translation", "tayga-464xlat", ("IPv4", "CLAT", "IPv6", "PLAT", "IPv4")),
    *both_and_one("SRv6", "encapsulation", "srv6", ("IPv4", "H.Encaps", "SRv6", "End.DX4", "IPv4"), initial_fps=50_000),
    *both_and_one("VXLAN", "encapsulation", "vxlan", ("IPv4", "VTEP", "VXLAN", "VTEP", "IPv4"), initial_fps=50_000),
    Chain("NPTv6", "prefix translation", "nptv6", ("IPv6", "NPTv6", "IPv6"), initial_fps=50_000),
    emulated("router", "no translation", "kernel-vm", ("IPv4", "router", "IPv4")),
    emulated("SIIT", "single translation", "jool-siit", ("IPv6", "Jool", "IPv4")),
    emulated("464XLAT", "double translation", "jool-464xlat", ("IPv4", "CLAT", "IPv6", "PLAT", "IPv4")),
    emulated("DS-Lite", "encapsulation", "ds-lite", ("IPv4", "B4", "IPv4 in IPv6", "AFTR", "IPv4"), forward=True),
    emulated("MAP-E", "encapsulation", "map-e", ("IPv4", "CE", "IPv4 in IPv6", "BR", "IPv4")),
    emulated("lw4o6", "encapsulation", "lw4o6", ("IPv4", "lwB4", "IPv4 in IPv6", "lwAFTR", "IPv4")),
    emulated("6rd", "encapsulation", "6rd", ("IPv6", "CE", "IPv6 in IPv4", "BR", "IPv6")),
    emulated("WireGuard", "encryption", "wireguard", ("IPv4", "peer", "WireGuard", "peer", "IPv4")),
)


@dataclass(frozen=True)
class Measured:
    """The points of one chain; None: there is none."""

    dut: str
    throughput: Any
    latency: Any = None
    pdv: Any = None
    loss: Any = None


def main() -> int:
    """Measure, and write the page."""
    labs = tuple(dict.fromkeys(chain.lab for chain in CHAINS))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labs", metavar="NAME,…", help=f"of {', '.join(labs)} (default: all that are not emulated)")
    parser.add_argument("--emulated", action="store_true", help="those in an emulated machine too")
    parser.add_argument("--duration", type=float, default=1.0, metavar="S", help="of each trial (default: 1)")
    parser.add_argument("--resolution", default="5%", help="of each search (default: 5%%)")
    parser.add_argument("--out", type=Path, default=Path("results/transition"))
    chosen = parser.parse_args()
    names = chosen.labs.split(",") if chosen.labs else ()
    if unknown := [name for name in names if name not in labs]:
        parser.error(f"no lab here is called {unknown[0]}; there are {', '.join(labs)}")
    wanted = [one for one in CHAINS if (one.lab in names if names else chosen.emulated or not one.emulated)]
    began_s = time.monotonic()
    found, missing = {}, []
    for chain in wanted:
        try:
            found[chain] = measured(chain, chosen.out / chain.name, chosen.duration, chosen.resolution)
        except dutperf.DutperfError as error:
            missing.append(f"Not measured: {chain.technology}, {chain.picture()}: {error}")
            print(missing[-1], file=sys.stderr)
    if not found:
        return 2
    text = page(found, missing, chosen.duration, time.monotonic() - began_s)
    (chosen.out / "transition.md").write_text(text, encoding="utf-8")
    print(text)
    return 0


def measured(chain: Chain, out: Path, duration_s: float, resolution: str) -> Measured:
    """Measure one chain."""
    print(f"{chain.technology}: {chain.picture()}", file=sys.stderr, flush=True)
    with dutperf.bench(lab=chain.lab, lab_options=chain.options) as bench:

        def run(procedure: Any, **conditions: Any) -> Any:
            usual = QUICK | {"duration_s": duration_s} | ({"directions": "forward"} if chain.forward else {})
            wanted = dutperf.conditions_of(procedure)(**usual, **conditions)
            results = bench.measure(wanted, out / procedure)
            results.write_report()
            return results[procedure].summary

        search = run("throughput", initial_rate=chain.initial_fps, resolution=resolution)
        [point] = search.points
        dut = f"{search.dut['name']} {search.dut.get('version', '')}".strip()
        if point.throughput_fps.median is None:
            return Measured(dut, point)
        rate = round(point.throughput_fps.median)
        return Measured(
            dut,
            point,
            latency=run("latency", rate=rate, tags=500).points[0],
            pdv=run("pdv", rate=rate).points[0],
            loss=run("frame-loss", rates=[round(OVERLOAD * rate)]).points[0],
        )


def page(found: Mapping[Chain, Measured], missing: Sequence[str], duration_s: float, took_s: float) -> str:
    """The page, in Markdown."""
    machine = f"{processor()}, Linux {platform.release()}"
    about = [EMULATED] if any(chain.emulated for chain in found) else []
    how = f"The smallest frames, trials of {duration_s:g} s, both directions but for DS-Lite"
    parts = (
        "# Transition technologies compared",
        f"{how}. {machine}. Measured in {took_s / 60:.0f} minutes.",
        "\n".join(f"* {chain.technology}, {chain.kind}: `{chain.picture()}`" for chain in found),
        table(found),
        HOW_TO_READ,
        *about,
        *missing,
    )
    return "\n\n".join(parts) + "\n"


def table(found: Mapping[Chain, Measured]) -> str:
    """A row for each chain."""
    heads = ["technology", "devices", "DUT", "throughput", "latency, ms", "99.9 %", "PDV, ms", "loss"]
    rows = [
        [
            chain.technology,
            chain.form,
            one.dut,
            rate(one.throughput),
            *latency(one.latency),
            pdv(one.pdv),
            loss(one.loss),
        ]
        for chain, one in found.items()
    ]
    align = ("left", "left", "left", *("right",) * (len(heads) - 3))
    return str(tabulate(rows, heads, tablefmt="github", disable_numparse=True, colalign=align))


def rate(point: Any) -> str:
    """The median, in brackets where something else than the DUT was the limit."""
    median = point.throughput_fps.median
    text = "-" if median is None else f"{median:,.0f}"
    return text if median is None or point.limited_by == "dut" else f"({text})"


def latency(point: Any) -> tuple[str, str]:
    """The typical and the worst-case latency."""
    return slower(point, "TL"), slower(point, "WCL")


def pdv(point: Any) -> str:
    """The packet delay variation."""
    return slower(point, "PDV")


def slower(point: Any, figure: str) -> str:
    """The median of a figure in ms, of the slower direction."""
    each = [] if point is None else [of[figure].typical for of in point.directions().values() if figure in of]
    return f"{max(each):.3f}" if each else "-"


def loss(point: Any) -> str:
    """The share of the frames that were lost in the worse direction."""
    share = None if point is None or not point.rates else point.rates[0].loss_ratio.worst.median
    return "-" if share is None else f"{share:.1%}"


def processor() -> str:
    """Its name, as the kernel tells."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine())


if __name__ == "__main__":
    raise SystemExit(main())
