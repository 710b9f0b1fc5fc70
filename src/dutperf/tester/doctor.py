# SPDX-License-Identifier: Apache-2.0
"""What this machine offers a tester and what it lacks, with a line of advice for each lack, and
what :func:`repairs` can do about it.

What matters is known from the error model of software testers (Lencse, "Checking the Accuracy of
Siitperf", 2021): interruptions of the sending loop, clocks that disagree, and resources shared with
the DUT make a tester blame the DUT for its own faults.
"""

from __future__ import annotations

import re
import resource
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from dutperf.machine import access, memory, pci
from dutperf.machine.access import MachineError
from dutperf.machine.binding import load
from dutperf.machine.pci import DRIVERS, HANDING_OVER, SHARED, VFIO, Function
from dutperf.machine.ports import inventory
from dutperf.machine.steps import Step
from dutperf.tester import TesterError
from dutperf.tester.engine import EngineCommand

State = Literal["ok", "note", "missing"]

CAPABILITIES = {"CAP_NET_ADMIN": 12, "CAP_NET_RAW": 13, "CAP_IPC_LOCK": 14, "CAP_SYS_ADMIN": 21}
"""What a tester needs, by bit (capability.h): ports, raw frames, locked memory, namespaces."""
KERNEL_FEATURES = {
    "VETH": "veth pairs (the cables of labs)",
    "TUN": "TUN interfaces (TAYGA)",
    "XDP_SOCKETS": "AF_XDP sockets (ports af_xdp:IF)",
    "NF_TABLES_NETDEV": "nftables at ingress (labs)",
}
PORT_DRIVERS = ("af_packet", "af_xdp", "ring", "null")
"""Drivers behind the port specs that need no PCI device."""
STEAL_LIMIT_PERCENT = 0.5
"""Stolen time from which frames are late often enough to spoil trials."""


@dataclass(frozen=True)
class Finding:
    """One thing looked at: ``ok``, a ``note`` (good to know, nothing to do) or a ``lack``, which
    alone has advice."""

    topic: str
    state: State
    text: str
    advice: str | None = None
    repair: str | None = None
    """What :func:`repairs` does about it, where it can."""


def _engine() -> str:
    return EngineCommand.find().program


@dataclass(frozen=True)
class Machine(access.Machine):
    """With what no file tells, which a test makes up as well."""

    memlock_bytes: int = field(default_factory=lambda: resource.getrlimit(resource.RLIMIT_MEMLOCK)[0])
    pause: Callable[[], None] = lambda: time.sleep(0.5)
    find_program: Callable[[str], str | None] = shutil.which
    find_engine: Callable[[], str] = _engine

    def cpu_field(self, name: str) -> str:
        """A field of the first core in /proc/cpuinfo; empty where it is not told."""
        found = re.search(rf"^{name}\s*:\s*(.*)$", self.read("proc/cpuinfo") or "", re.MULTILINE)
        return found[1] if found else ""

    def cores(self) -> int:
        """How many cores are on line."""
        return len(re.findall(r"^processor\s*:", self.read("proc/cpuinfo") or "", re.MULTILINE))

    def capabilities(self) -> int:
        """The effective capabilities of this process, as a bit set."""
        found = re.search(r"^CapEff:\s*(\w+)$", self.read("proc/self/status") or "", re.MULTILINE)
        return int(found[1], 16) if found else 0


def examine(machine: Machine | None = None) -> list[Finding]:
    """Everything that can be found out about this machine, in a fixed order. Takes about half a
    second (the sample of steal time)."""
    looked_at = machine or Machine()
    return [finding for look in _LOOKS for finding in look(looked_at)]


def repairs(machine: access.Machine) -> list[Step]:
    """What can be done about what is missing, without starting the machine again: huge pages,
    hugetlbfs, the driver that hands cards to DPDK."""
    return [*memory.reserve(machine), *memory.mount(machine), *_drivers(machine)]


def _drivers(machine: access.Machine) -> Iterator[Step]:
    if _cards(machine) and not any(machine.exists(f"{DRIVERS}/{name}") for name in HANDING_OVER):
        yield load(VFIO)


def _said(steps: Iterator[Step]) -> str | None:
    """What steps do; None where there is nothing to be done."""
    return "; ".join(step.what for step in steps) or None


def cores(machine: Machine) -> Iterator[Finding]:
    """Model and number: each role of the hot loops wants one, a lab's DUT another."""
    count, model = machine.cores(), machine.cpu_field("model name") or "unknown CPU"
    if count < 2:
        yield Finding(
            "cores",
            "missing",
            f"{model}, one core",
            "give the machine a second core: the tester and a lab's DUT disturb each other on one",
        )
    else:
        sharing = "; sending and receiving share cores" if count < 5 else ""
        yield Finding("cores", "note" if sharing else "ok", f"{model}, {count} cores{sharing}")


def isolated_cores(machine: Machine) -> Iterator[Finding]:
    """Cores that the kernel gives no other work."""
    isolated, count = machine.read("sys/devices/system/cpu/isolated"), machine.cores()
    if isolated:
        yield Finding("isolated cores", "ok", isolated)
    elif count <= 2:
        yield Finding("isolated cores", "note", "none; with two cores there is none to spare")
    else:
        advice = f"add isolcpus=1-{count - 1} nohz_full=1-{count - 1} to the kernel's command line"
        yield Finding("isolated cores", "missing", "none: other programs may interrupt the hot loops", advice)


def numa(machine: Machine) -> Iterator[Finding]:
    """Memory nodes: a port's buffers and cores belong on the port's node."""
    nodes = machine.glob("sys/devices/system/node/node[0-9]*")
    if len(nodes) <= 1:
        yield Finding("NUMA", "ok", "one node")
    else:
        of_node = ", ".join(
            f"{node.name}: cores {machine.read(str(node.relative_to(machine.root) / 'cpulist'))}" for node in nodes
        )
        yield Finding("NUMA", "note", f"{len(nodes)} nodes ({of_node}); choose engine.cores on the node of the ports")


def governor(machine: Machine) -> Iterator[Finding]:
    """Frequency scaling delays the first frames after a pause."""
    governors = {
        path.read_text().strip() for path in machine.glob("sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor")
    }
    if not governors:
        yield Finding("governor", "note", "the kernel shows no frequency scaling")
    elif governors == {"performance"}:
        yield Finding("governor", "ok", "performance")
    else:
        yield Finding(
            "governor", "missing", ", ".join(sorted(governors)), "cpupower frequency-set --governor performance"
        )


def tsc(machine: Machine) -> Iterator[Finding]:
    """The clock of all schedules and time stamps: it must run at one speed, always, and alike on
    all cores."""
    flags = machine.cpu_field("flags").split()
    missing = [flag for flag in ("constant_tsc", "nonstop_tsc") if flag not in flags]
    source = machine.read("sys/devices/system/clocksource/clocksource0/current_clocksource") or "unknown"
    if missing:
        yield Finding(
            "TSC",
            "missing",
            f"the CPU does not promise {' and '.join(missing)}",
            "use a machine, or a type of virtual machine, with an invariant TSC",
        )
    elif source not in ("tsc", "kvm-clock"):
        advice = "find in the kernel's log why it gave the TSC up; tsc=reliable on its command line overrules it"
        yield Finding("TSC", "missing", f"the kernel does not trust the TSC: its clock source is {source}", advice)
    else:
        yield Finding("TSC", "ok", f"constant, nonstop; the kernel's clock source is {source}")


def huge_pages(machine: Machine) -> Iterator[Finding]:
    """Pages of 2 MB or 1 GB, of which either will do."""
    pages = memory.huge_pages(machine)
    told = "; ".join(map(str, pages))
    if memory.suffices(pages):
        yield Finding("huge pages", "ok", told)
    else:
        few = f"{told}; ports run without, at a cost in speed; PCI ports do not run"
        advice = (
            memory.cannot_reserve(machine)
            or "sysctl vm.nr_hugepages=512 (1 GB in all), or hugepages=512 on the kernel's command line to have them"
            " always"
        )
        yield Finding("huge pages", "missing", few, advice, _said(memory.reserve(machine)))


def hugetlbfs(machine: Machine) -> Iterator[Finding]:
    """Other programs with DPDK keep their huge pages in files there."""
    mounts = memory.mount_points(machine)
    if mounts:
        yield Finding("hugetlbfs", "ok", f"mounted on {', '.join(mounts)}")
    else:
        text = "not mounted; the engine needs none, other programs with DPDK do (dpdk-testpmd, Open vSwitch)"
        yield Finding("hugetlbfs", "note", text, repair=_said(memory.mount(machine)))


def dpdk(machine: Machine) -> Iterator[Finding]:
    """The library's version, and whether the drivers of the ports are there."""
    package = next((path.read_text() for path in machine.glob("usr/lib/*/pkgconfig/libdpdk.pc")), "")
    version = re.search(r"^Version:\s*(\S+)$", package, re.MULTILINE)
    libraries = machine.glob("usr/lib/*/dpdk/pmds-*/librte_net_*.so.*")
    drivers = {path.name.removeprefix("librte_net_").partition(".")[0] for path in libraries}
    missing = [driver for driver in PORT_DRIVERS if driver not in drivers]
    if version is None or missing:
        absent = "not installed" if version is None else f"{version[1]}, without the drivers {', '.join(missing)}"
        yield Finding("DPDK", "missing", absent, "apt-get install libdpdk-dev")
    else:
        yield Finding(
            "DPDK", "ok", f"{version[1]}, {len(drivers)} network drivers, among them {', '.join(PORT_DRIVERS)}"
        )


def cards(machine: Machine) -> Iterator[Finding]:
    """Network cards that the kernel does not use itself, and its drivers that hand them to DPDK."""
    free = ", ".join(card.address for card in _cards(machine))
    handing_over = [name for name in HANDING_OVER if machine.exists(f"{DRIVERS}/{name}")]
    if not free:
        yield Finding(
            "network cards",
            "note",
            "none free on PCI (dutperf ports): ports are af_xdp:IF or af_packet:IF, whose speed the kernel bounds",
        )
    elif handing_over:
        yield Finding("network cards", "ok", f"{free}; {', '.join(handing_over)} can hand them to DPDK")
    else:
        advice = "modprobe vfio-pci, then dutperf ports bind ADDRESS for the cards to measure with"
        yield Finding(
            "network cards", "missing", f"{free}, but no driver to hand them to DPDK", advice, _said(_drivers(machine))
        )


def iommu(machine: Machine) -> Iterator[Finding]:
    """It keeps a card from memory that is not the tester's; vfio-pci asks for it."""
    if pci.has_iommu(machine):
        yield Finding("IOMMU", "ok", "in use")
    elif _cards(machine):
        yield Finding(
            "IOMMU",
            "missing",
            "none: vfio-pci does not take a card, unless it is bound with --no-iommu",
            pci.without_iommu(machine),
        )
    else:
        yield Finding("IOMMU", "note", "none; only PCI ports need one")


def _cards(machine: access.Machine) -> list[Function]:
    """Network cards that a DPDK driver has or may have: not those that the kernel uses, which may
    be what connects this machine."""
    try:
        known = inventory(machine)
    except MachineError:
        return []
    others = [card for card in known.cards if card.address not in known.untouchable and card.driver not in SHARED]
    return [card for card in others if card.is_handed_over or known.use(card) is None]


def engine(machine: Machine) -> Iterator[Finding]:
    """The engine's program."""
    try:
        yield Finding("engine", "ok", machine.find_engine())
    except TesterError as error:
        yield Finding("engine", "missing", str(error), "make build")


def programs(machine: Machine) -> Iterator[Finding]:
    """What labs start."""
    for program, package in {"ip": "iproute2", "nft": "nftables", "tayga": "tayga"}.items():
        path = machine.find_program(program)
        if path is None:
            yield Finding(program, "missing", "not found; labs need it", f"apt-get install {package}")
        else:
            yield Finding(program, "ok", path)


def privileges(machine: Machine) -> Iterator[Finding]:
    """Capabilities of this process."""
    held = machine.capabilities()
    missing = [name for name, bit in CAPABILITIES.items() if not held >> bit & 1]
    if missing:
        yield Finding(
            "privileges",
            "missing",
            f"without {', '.join(missing)}",
            "run as root (sudo), in a container with these capabilities added",
        )
    else:
        yield Finding("privileges", "ok", ", ".join(CAPABILITIES))


def locked_memory(machine: Machine) -> Iterator[Finding]:
    """Packet sockets and DPDK lock memory; CAP_IPC_LOCK lifts the limit."""
    if machine.memlock_bytes == resource.RLIM_INFINITY or machine.capabilities() >> CAPABILITIES["CAP_IPC_LOCK"] & 1:
        yield Finding("locked memory", "ok", "unlimited")
    else:
        yield Finding(
            "locked memory",
            "missing",
            f"at most {machine.memlock_bytes // 1024} KiB",
            "ulimit -l unlimited, or run as root",
        )


def virtualization(machine: Machine) -> Iterator[Finding]:
    """A hypervisor may take cores away at any time."""
    if "hypervisor" in machine.cpu_field("flags").split():
        vendor = machine.read("sys/class/dmi/id/sys_vendor")
        yield Finding(
            "virtual machine",
            "note",
            f"yes{f' ({vendor})' if vendor else ''}; its host can interrupt the hot loops, which trials then report",
        )
    else:
        yield Finding("virtual machine", "ok", "no")


def steal_time(machine: Machine) -> Iterator[Finding]:
    """Share of its time that the hypervisor took from this machine, now and since it started."""
    before = _cpu_times(machine)
    machine.pause()
    after = _cpu_times(machine)
    if before is None or after is None:
        yield Finding("steal time", "note", "not told by the kernel")
        return
    now, ever = (
        _stolen_percent([late - early for early, late in zip(before, after, strict=True)]),
        _stolen_percent(after),
    )
    text = f"{now:.2f} % just now, {ever:.2f} % since start"
    if max(now, ever) > STEAL_LIMIT_PERCENT:
        yield Finding(
            "steal time",
            "missing",
            text,
            "use a machine with cores of its own: trials will be found invalid whenever the host takes a core away",
        )
    else:
        yield Finding("steal time", "ok", text)


def kernel_features(machine: Machine) -> Iterator[Finding]:
    """What labs and ports need of the kernel, as its configuration tells."""
    told = {text: machine.kernel_has(name) for name, text in KERNEL_FEATURES.items()}
    missing = [text for text, has in told.items() if has is False]
    if None in told.values():
        yield Finding("kernel", "note", f"{machine.release}; it does not tell its configuration")
    elif missing:
        yield Finding(
            "kernel", "missing", f"{machine.release}, without {', '.join(missing)}", "use a distribution's own kernel"
        )
    else:
        yield Finding("kernel", "ok", f"{machine.release}, with veth, TUN, AF_XDP and nftables")


def _cpu_times(machine: Machine) -> list[int] | None:
    """Clock ticks of all cores together (proc(5), stat): user, nice, system, idle, iowait, irq,
    softirq, steal."""
    found = re.search(r"^cpu\s+(.*)$", machine.read("proc/stat") or "", re.MULTILINE)
    times = [int(value) for value in found[1].split()[:8]] if found else []
    return times if len(times) == 8 else None


def _stolen_percent(times: list[int]) -> float:
    return 100 * times[7] / (sum(times) or 1)


_LOOKS: tuple[Callable[[Machine], Iterator[Finding]], ...] = (
    cores,
    isolated_cores,
    numa,
    governor,
    tsc,
    virtualization,
    steal_time,
    huge_pages,
    hugetlbfs,
    locked_memory,
    privileges,
    kernel_features,
    dpdk,
    cards,
    iommu,
    engine,
    programs,
)
