# SPDX-License-Identifier: Apache-2.0
"""Checks what this machine offers a tester and what is missing, with advice for each missing item,
and what :func:`repairs` can do about it.

The checks follow the error model of software testers (Lencse, "Checking the Accuracy of Siitperf",
2021): interruptions of the sending loop, clocks that disagree, and resources shared with the DUT
make a tester blame the DUT for its own faults.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

from dutperf import installation
from dutperf.errors import DutperfError
from dutperf.invocation import as_root
from dutperf.machine import access, cpu_quota, cpu_sets, memory, pci, processor, root_mount
from dutperf.machine.access import MachineError
from dutperf.machine.binding import load
from dutperf.machine.pci import DRIVERS, HANDING_OVER, SHARED, VFIO, Function
from dutperf.machine.ports import Port, inventory, ports
from dutperf.machine.programs import BUILT_IN
from dutperf.machine.steps import Step
from dutperf.machine.timestamping import UNKNOWN
from dutperf.spelling import with_and

State = Literal["ok", "note", "missing"]

CAPABILITIES = {"CAP_NET_ADMIN": 12, "CAP_NET_RAW": 13, "CAP_IPC_LOCK": 14, "CAP_SYS_ADMIN": 21}
"""Capabilities that a tester needs, by bit (capability.h): ports, raw frames, locked memory,
namespaces."""
KERNEL_FEATURES = {
    "VETH": "veth pairs (the cables of labs)",
    "TUN": "TUN interfaces (TAYGA)",
    "XDP_SOCKETS": "AF_XDP sockets (ports af_xdp:IF)",
    "NF_TABLES_NETDEV": "nftables at ingress (labs)",
}
_EFFECTIVE = 1
"""In the first word of a file's capabilities (capability.h)."""
PORT_DRIVERS = ("af_packet", "af_xdp", "ring", "null")
"""Drivers behind the port specs that need no PCI device."""
STEAL_LIMIT_PERCENT = 0.5
"""From this share of stolen time, frames are late often enough to make trials invalid."""


@dataclass(frozen=True)
class Finding:
    """Result of one check: ``ok``, a ``note`` (nothing to do) or ``missing``, which alone has
    advice."""

    topic: str
    state: State
    text: str
    advice: str | None = None
    repair: str | None = None
    """The repair by :func:`repairs`, where there is one."""


@dataclass(frozen=True)
class Machine(access.Machine):
    """The machine with the properties that are in no file; tests replace them too."""

    find_engine: Callable[[], str] = field(kw_only=True)
    """The engine's program. Raises DutperfError where there is none."""
    engine_version: Callable[[str], str] = field(kw_only=True)
    """What that program says of itself. Raises DutperfError where it does not start."""
    lab_programs: Mapping[str, str] = field(kw_only=True)
    """Programs that labs start, each with its Debian package."""
    memlock_bytes: int = field(default_factory=lambda: resource.getrlimit(resource.RLIMIT_MEMLOCK)[0])
    pause: Callable[[], None] = lambda: time.sleep(0.5)
    find_program: Callable[[str], str | None] = shutil.which
    file_capabilities: Callable[[str], bytes] = lambda program: os.getxattr(program, "security.capability")

    def cpu_field(self, name: str) -> str:
        return processor.cpu_field(self.read("proc/cpuinfo") or "", name)

    def cores(self) -> int:
        return len(re.findall(r"^processor\s*:", self.read("proc/cpuinfo") or "", re.MULTILINE))

    def usable_cores(self) -> frozenset[int]:
        """Those that this process, the engine and labs may use (cpusets, taskset)."""
        allowed = self._status("Cpus_allowed_list")
        return frozenset(range(self.cores())) if allowed is None else cpu_sets.from_list(allowed)

    def engine_capabilities(self) -> int:
        """The capabilities that the engine has when this process starts it, as a bit set: those of root, or
        those of its file (capabilities(7))."""
        if self.user == 0:
            return int(self._status("CapEff") or "0", 16)
        with suppress(DutperfError, OSError, struct.error):
            attribute = self.file_capabilities(self.find_engine())
            magic, low, _, high, _ = struct.unpack_from("<5I", attribute.ljust(20, b"\0"))
            in_file = (low | high << 32) if magic & _EFFECTIVE else 0
            return in_file & int(self._status("CapBnd") or "ffffffffffffffff", 16) | self._ambient()
        return self._ambient()

    def _ambient(self) -> int:
        """Capabilities that every program inherits."""
        return int(self._status("CapAmb") or "0", 16)

    def _status(self, name: str) -> str | None:
        match = re.search(rf"^{name}:\s*(\S+)$", self.read("proc/self/status") or "", re.MULTILINE)
        return None if match is None else match[1]


def examine(machine: Machine) -> list[Finding]:
    """All checks of a machine, in a fixed order. Takes about half a second (the sample of steal
    time)."""
    return [finding for check in _CHECKS for finding in check(machine)]


def repairs(machine: access.Machine) -> list[Step]:
    """Repairs of missing items without a reboot: huge pages, hugetlbfs, the driver that hands cards
    to DPDK."""
    return [*memory.reserve(machine), *memory.mount(machine), *_drivers(machine)]


def _drivers(machine: access.Machine) -> Iterator[Step]:
    if _cards(machine) and not any(machine.exists(f"{DRIVERS}/{name}") for name in HANDING_OVER):
        yield load(VFIO)


def _described(steps: Iterator[Step]) -> str | None:
    """Description of the steps; None where there are none."""
    return "; ".join(step.what for step in steps) or None


def cores(machine: Machine) -> Iterator[Finding]:
    """Model and number of cores: each role of the hot loops needs one, a lab's DUT another."""
    usable, whole = machine.usable_cores(), machine.cores()
    model = processor.cpu_model(machine.read("proc/cpuinfo") or "") or "unknown CPU"
    count = len(usable)
    some = f"; of {whole} this process may use {cpu_sets.as_list(usable)} (cpuset)" if count < whole else ""
    if count < 2:
        yield Finding(
            "cores",
            "missing",
            f"{model}, one core{some}",
            f"give {'this process' if some else 'the machine'} a second core: on one, the tester and a lab's DUT"
            " disturb each other",
        )
    else:
        sharing = "; sending and receiving share cores" if count < 5 else ""
        yield Finding("cores", "note" if sharing else "ok", f"{model}, {count} cores{some}{sharing}")


def quota(machine: Machine) -> Iterator[Finding]:
    """Quotas of control groups stop the hot loops and the DUT, however idle the machine is."""
    limit = cpu_quota.quota_cores(machine)
    if limit is None:
        yield Finding("CPU quota", "ok", "none")
    else:
        yield Finding(
            "CPU quota",
            "missing",
            f"{limit:g} cores' time: the kernel stops the tester and a lab's DUT whenever it is used up",
            "start dutperf without a quota (CPUQuota= of systemd, --cpus of a container, limits.cpu of Kubernetes)",
        )


def load_average(machine: Machine) -> Iterator[Finding]:
    """Other programs that take the cores make trials invalid. The kernel's load average of the last minute."""
    average = float((machine.read("proc/loadavg") or "0").split()[0])
    cores_taken = average > len(machine.usable_cores()) / 2
    busy = ": if that goes on, trials will be repeated or stay without a verdict" if cores_taken else ""
    yield Finding("load", "note" if cores_taken else "ok", f"{average:g} in the last minute{busy}")


def isolated_cores(machine: Machine) -> Iterator[Finding]:
    """Cores that the kernel keeps free of other work."""
    isolated, count = machine.read("sys/devices/system/cpu/isolated"), len(machine.usable_cores())
    if isolated:
        yield Finding("isolated cores", "ok", isolated)
    elif count <= 2:
        yield Finding("isolated cores", "note", "none; with two cores there is none to spare")
    else:
        spared = cpu_sets.as_list(sorted(machine.usable_cores())[1:])
        advice = f"add isolcpus={spared} nohz_full={spared} to {access.COMMAND_LINE}"
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
    """Frequency scaling, which delays the first frames after a pause."""
    paths = machine.glob("sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor")
    governors = {one for path in paths if (one := machine.read(str(path.relative_to(machine.root))))}  # or offline
    if not governors:
        yield Finding("governor", "note", "the kernel shows no frequency scaling")
    elif governors == {"performance"}:
        yield Finding("governor", "ok", "performance")
    else:
        yield Finding(
            "governor", "missing", ", ".join(sorted(governors)), "cpupower frequency-set --governor performance"
        )


def tsc(machine: Machine) -> Iterator[Finding]:
    """The clock of all schedules and time stamps, which must run at a constant speed and be the same
    on all cores."""
    flags = machine.cpu_field("flags").split()
    missing = [flag for flag in ("constant_tsc", "nonstop_tsc") if flag not in flags]
    source = machine.read("sys/devices/system/clocksource/clocksource0/current_clocksource") or "unknown"
    if source == processor.ARM64_COUNTER:
        yield Finding("TSC", "ok", f"arm64's generic timer; the kernel's clock source is {source}")
    elif missing:
        yield Finding(
            "TSC",
            "missing",
            f"the CPU does not report {with_and(missing)}",
            "use a machine, or a type of virtual machine, with an invariant TSC",
        )
    elif source not in ("tsc", "kvm-clock"):
        advice = "look in the kernel log why it dropped the TSC; tsc=reliable on its command line overrides this"
        yield Finding("TSC", "missing", f"the kernel does not trust the TSC: its clock source is {source}", advice)
    else:
        yield Finding("TSC", "ok", f"constant, nonstop; the kernel's clock source is {source}")


def huge_pages(machine: Machine) -> Iterator[Finding]:
    """Huge pages of 2 MB or 1 GB; either size suffices."""
    pages = memory.huge_pages(machine)
    text = "; ".join(map(str, pages))
    if memory.suffices(pages):
        yield Finding("huge pages", "ok", text)
    else:
        few = f"{text}; without them ports are slower, and PCI ports do not run"
        advice = (
            memory.cannot_reserve(machine)
            or "as root: sysctl -w vm.nr_hugepages=512 (1 GB in all); to have them after each boot: echo"
            " vm.nr_hugepages=512 > /etc/sysctl.d/dutperf.conf"
        )
        yield Finding("huge pages", "missing", few, advice, _described(memory.reserve(machine)))


def hugetlbfs(machine: Machine) -> Iterator[Finding]:
    """The file system where other DPDK programs keep their huge pages."""
    mounts = memory.mount_points(machine)
    if mounts:
        yield Finding("hugetlbfs", "ok", f"mounted on {', '.join(mounts)}")
    else:
        text = "not mounted; the engine does not need it, other DPDK programs do (dpdk-testpmd, Open vSwitch)"
        yield Finding("hugetlbfs", "note", text, repair=_described(memory.mount(machine)))


def dpdk(machine: Machine) -> Iterator[Finding]:
    """The drivers of the ports. The engine's version names DPDK's."""
    with suppress(DutperfError):
        if BUILT_IN in machine.engine_version(machine.find_engine()):
            yield Finding("DPDK", "ok", "built into the engine, with its drivers")
            return
    libraries = machine.glob("usr/lib/*/dpdk/pmds-*/librte_net_*.so.*")
    drivers = {path.name.removeprefix("librte_net_").partition(".")[0] for path in libraries}
    missing = [driver for driver in PORT_DRIVERS if driver not in drivers]
    if missing:
        absent = f"without the drivers {', '.join(missing)}" if drivers else "no drivers"
        drivers_of = ("librte-meta-net", "librte-meta-bus", "librte-meta-mempool")
        yield Finding("DPDK", "missing", absent, installation.package(*drivers_of))
    else:
        yield Finding("DPDK", "ok", f"{len(drivers)} network drivers, among them {', '.join(PORT_DRIVERS)}")


def cards(machine: Machine) -> Iterator[Finding]:
    """Network cards that the kernel does not use, and the kernel drivers that hand them to DPDK."""
    free = ", ".join(card.address for card in _cards(machine))
    handing_over = [name for name in HANDING_OVER if machine.exists(f"{DRIVERS}/{name}")]
    if not free:
        yield Finding(
            "network cards",
            "note",
            "none free on PCI (dutperf ports): use ports af_xdp:IF or af_packet:IF, whose speed the kernel limits",
        )
    elif handing_over:
        yield Finding("network cards", "ok", f"{free}; {', '.join(handing_over)} can hand them to DPDK")
    else:
        advice = "modprobe vfio-pci, then dutperf ports bind ADDRESS for the cards to measure with"
        yield Finding(
            "network cards",
            "missing",
            f"{free}, but no driver to hand them to DPDK",
            advice,
            _described(_drivers(machine)),
        )


def iommu(machine: Machine) -> Iterator[Finding]:
    """The IOMMU restricts a card to the tester's memory; vfio-pci requires it."""
    if pci.has_iommu(machine):
        yield Finding("IOMMU", "ok", "in use")
    elif _cards(machine):
        yield Finding(
            "IOMMU",
            "missing",
            "none: vfio-pci does not take a card unless it is bound with --no-iommu",
            pci.without_iommu(machine),
        )
    else:
        yield Finding("IOMMU", "note", "none; only PCI ports need one")


def time_stamps(machine: Machine) -> Iterator[Finding]:
    """Who can time-stamp the frames of the interfaces to measure with (``--stamps``), as their drivers claim."""
    try:
        found = [one for one in ports(inventory(machine)) if one.interface is not None and one.port is not None]
    except MachineError:
        return
    if not found:
        return
    hindered = any(one.clock_hindrance or one.stamps == UNKNOWN for one in found)
    of_cards = any(one.clock is not None for one in found)
    unprivileged = of_cards and not machine.engine_capabilities() >> CAPABILITIES["CAP_NET_ADMIN"] & 1
    yield Finding(
        "time stamps",
        "note" if hindered or unprivileged else "ok",
        "as the drivers claim: "
        + "; ".join(map(_claimed, found))
        + ("; those of a card need CAP_NET_ADMIN" if unprivileged else ""),
    )


def _claimed(port: Port) -> str:
    return f"{port.interface} {port.stamps}" + (f" ({port.clock_text})" if port.clock else "")


def _cards(machine: access.Machine) -> list[Function]:
    """Network cards that a DPDK driver has or may have, without those that the kernel uses, which may
    connect this machine to its network."""
    try:
        found = inventory(machine)
    except MachineError:
        return []
    others = [card for card in found.cards if card.address not in found.untouchable and card.driver not in SHARED]
    return [card for card in others if card.is_handed_over or found.use(card) is None]


def engine(machine: Machine) -> Iterator[Finding]:
    """The engine's program, and whether it starts."""
    try:
        program = machine.find_engine()
        yield Finding("engine", "ok", f"{program}: {machine.engine_version(program)}")
    except DutperfError as error:
        command = installation.engine()
        yield Finding("engine", "missing", error.sentence.removesuffix(f": {command}"), command)


def programs(machine: Machine) -> Iterator[Finding]:
    for program, package in machine.lab_programs.items():
        path = machine.find_program(program)
        if path is None:
            yield Finding(program, "missing", "not found; labs need it", installation.package(package))
        else:
            yield Finding(program, "ok", path)


def privileges(machine: Machine) -> Iterator[Finding]:
    """Capabilities of the engine; labs need root in any case."""
    held = machine.engine_capabilities()
    missing = [name for name, bit in CAPABILITIES.items() if not held >> bit & 1]
    if missing:
        yield Finding(
            "privileges",
            "missing",
            f"the engine is without {', '.join(missing)}",
            f"{as_root()}; in a container add these capabilities",
        )
    else:
        yield Finding(
            "privileges",
            "ok" if machine.user == 0 else "note",
            ", ".join(CAPABILITIES) + ("" if machine.user == 0 else ", of the engine's file; labs need root (sudo)"),
        )


def namespaces(machine: Machine) -> Iterator[Finding]:
    """Whether labs and DUTs in named network namespaces can be entered."""
    if root_mount.is_mount_point(machine):
        yield Finding("namespaces", "ok", "can be entered")
    else:
        text = f"labs cannot enter them: {root_mount.NO_MOUNT_POINT}"
        yield Finding("namespaces", "missing", text, root_mount.ADVICE)


def locked_memory(machine: Machine) -> Iterator[Finding]:
    """Packet sockets and DPDK lock memory; CAP_IPC_LOCK lifts the limit."""
    if (
        machine.memlock_bytes == resource.RLIM_INFINITY
        or machine.engine_capabilities() >> CAPABILITIES["CAP_IPC_LOCK"] & 1
    ):
        yield Finding("locked memory", "ok", "unlimited")
    else:
        yield Finding(
            "locked memory",
            "missing",
            f"at most {machine.memlock_bytes // 1024} KiB",
            f"ulimit -l unlimited, or {as_root()}",
        )


def virtualization(machine: Machine) -> Iterator[Finding]:
    """Whether this is a virtual machine, whose hypervisor may take cores at any time."""
    flags = machine.cpu_field("flags").split()  # of x86 only
    if "hypervisor" in flags or machine.read("sys/hypervisor/type"):
        vendor = machine.read("sys/class/dmi/id/sys_vendor")
        yield Finding(
            "virtual machine",
            "note",
            f"yes{f' ({vendor})' if vendor else ''}; its host can interrupt the hot loops, and trials then report it",
        )
    elif flags:
        yield Finding("virtual machine", "ok", "no")
    else:
        yield Finding("virtual machine", "note", "this kind of processor does not tell")


def steal_time(machine: Machine) -> Iterator[Finding]:
    """Share of the time that the hypervisor took from this machine, now and since boot."""
    before = _cpu_times(machine)
    machine.pause()
    after = _cpu_times(machine)
    if before is None or after is None:
        yield Finding("steal time", "note", "the kernel does not show it")
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
            "use a machine with dedicated cores: trials are invalid whenever the host takes a core",
        )
    else:
        yield Finding("steal time", "ok", text)


def kernel_features(machine: Machine) -> Iterator[Finding]:
    """Kernel features that labs and ports need, from the kernel's configuration."""
    features = {text: machine.kernel_has(name) for name, text in KERNEL_FEATURES.items()}
    missing = [text for text, has in features.items() if has is False]
    if None in features.values():
        yield Finding("kernel", "note", f"{machine.release}; its configuration is not readable")
    elif missing:
        yield Finding(
            "kernel", "missing", f"{machine.release}, without {', '.join(missing)}", "use a distribution's kernel"
        )
    else:
        yield Finding("kernel", "ok", f"{machine.release}, with veth, TUN, AF_XDP and nftables")


def _cpu_times(machine: Machine) -> list[int] | None:
    """Clock ticks of all cores together (proc(5), stat): user, nice, system, idle, iowait, irq,
    softirq, steal."""
    match = re.search(r"^cpu\s+(.*)$", machine.read("proc/stat") or "", re.MULTILINE)
    times = [int(value) for value in match[1].split()[:8]] if match else []
    return times if len(times) == 8 else None


def _stolen_percent(times: list[int]) -> float:
    return 100 * times[7] / (sum(times) or 1)


_CHECKS: tuple[Callable[[Machine], Iterator[Finding]], ...] = (
    cores,
    quota,
    load_average,
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
    namespaces,
    kernel_features,
    dpdk,
    cards,
    time_stamps,
    iommu,
    engine,
    programs,
)
