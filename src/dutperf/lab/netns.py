# SPDX-License-Identifier: Apache-2.0
"""Network namespaces and the virtual cables between them, for all labs.

Nothing here touches the host's interfaces or sysctls: interfaces are created inside the namespaces,
and settings are written from inside.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from dutperf.lab.errors import LabError
from dutperf.machine import root_mount

TESTER_PORTS = ("tl", "tr")
"""The tester's ends of the left and of the right cable."""
DUT_PORTS = ("dl", "dr")
"""The DUT's ends of the cables."""
CABLES = tuple(zip(TESTER_PORTS, DUT_PORTS, strict=True))
"""Both ends of each cable."""
NAMED = Path("/run/netns")
_IPV6_SETTINGS = Path("/proc/sys/net/ipv6")
FORWARDING = ("ipv4/ip_forward", "ipv6/conf/all/forwarding")
"""Settings of a router, below ``net``."""
NEIGHBOUR_LIFE_S = 3600
"""Lifetime of the DUT's neighbour entries without traffic."""


def run(argv: Sequence[str], stdin: str = "") -> str:
    """Standard output of a program.

    It runs in its own session, so that Ctrl-C on a terminal does not kill it half-way. Raises LabError: it cannot be
    started or fails; the message has the first line of its output."""
    try:
        done = subprocess.run(argv, input=stdin, capture_output=True, text=True, check=False, start_new_session=True)
    except OSError as error:
        raise LabError(f"cannot run {argv[0]}: {error.strerror}") from None
    if done.returncode != 0:
        complaint = (done.stderr or done.stdout).strip().splitlines() or [f"exit status {done.returncode}"]
        advice = f": {root_mount.NO_MOUNT_POINT}: {root_mount.ADVICE}" if "--make-rslave" in complaint[0] else ""
        raise LabError(f"{' '.join(argv[:6])} failed: {complaint[0]}{advice}")
    return done.stdout


def package_version(package: str) -> str | None:
    """Version of Debian's package, which has its own patches; None if the program comes from elsewhere."""
    try:
        return run(["dpkg-query", "--show", "--showformat", "${Version}", package])
    except LabError:
        return None


def has_ipv6() -> bool:
    """Whether the kernel has IPv6: one that was booted with ``ipv6.disable=1`` takes neither its settings nor
    its addresses, in no namespace."""
    return _IPV6_SETTINGS.exists()


def standalone(program: ModuleType, *argv: str) -> list[str]:
    """The command line of a module that is a program of its own and imports nothing of this package: without
    site-packages, so that it starts fast."""
    return [sys.executable, "-I", "-S", str(program.__file__), *argv]


@dataclass(frozen=True)
class Namespace:
    """A named network namespace."""

    name: str

    def create(self) -> None:
        """Create it. Raises LabError on an error of the kernel (a container without CAP_SYS_ADMIN)."""
        run(["ip", "netns", "add", self.name])

    @property
    def file(self) -> Path:
        return NAMED / self.name

    def exists(self) -> bool:
        return self.file.exists()

    def delete(self) -> None:
        """Remove the name; the kernel removes the interfaces after the last process ends."""
        if self.exists():
            run(["ip", "netns", "delete", self.name])

    def has_ipv6(self) -> bool:
        return has_ipv6()

    def processes(self) -> set[int]:
        """Ids of the processes in it, without this process and its ancestors."""
        if (own := _inode(self.file)) is None:
            return set()
        inside = (Path(entry) for entry in os.scandir("/proc") if entry.name.isdigit())
        return {int(one.name) for one in inside if _inode(one / "ns/net") == own} - _own_ancestry()

    def command(self, argv: Iterable[str]) -> list[str]:
        """``argv``, to run inside the namespace."""
        return ["ip", "netns", "exec", self.name, *argv]

    def do(self, argv: Sequence[str], stdin: str = "") -> None:
        run(self.command(argv), stdin)

    def ip(self, *lines: str) -> None:
        """Run ``ip`` commands, one a line, in order."""
        self.do(["ip", "-batch", "-"], "".join(f"{line}\n" for line in lines))

    def nft(self, ruleset: str) -> None:
        self.do(["nft", "-f", "-"], ruleset)

    def write(self, values: Mapping[str, object]) -> None:
        """Write kernel settings: path (shell patterns allowed) to value. This runs inside, because
        /proc/sys/net and /sys/class/net show the reader's namespace."""
        script = "".join(f"for file in {path}; do echo {value} > $file; done\n" for path, value in values.items())
        self.do(["sh", "-e"], script)

    def sysctl(self, values: Mapping[str, object]) -> None:
        """Set sysctls below ``net``, named by path: ``ipv4/ip_forward``. Those of IPv6 are left out where there
        is none."""
        there = self.has_ipv6()
        self.write(
            {
                f"/proc/sys/net/{path}": value
                for path, value in values.items()
                if there or not path.startswith(f"{_IPV6_SETTINGS.name}/")
            }
        )


def _inode(namespace: Path) -> int | None:
    """What tells a namespace from others; None: it is gone, or nobody's (of a process that has ended)."""
    try:
        return namespace.stat().st_ino
    except OSError:
        return None


def _own_ancestry() -> set[int]:
    """This process and its ancestors, which a take-down must not end."""
    ancestry, pid = set(), os.getpid()
    while pid > 0:
        ancestry.add(pid)
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return ancestry


def prepare_quiet(namespace: Namespace) -> None:
    """Create a namespace whose ports belong to a program: its kernel sends no frames of its own (router
    solicitations, MLD reports)."""
    namespace.create()
    namespace.sysctl({"ipv6/conf/all/disable_ipv6": 1, "ipv6/conf/default/disable_ipv6": 1})


def prepare_host(namespace: Namespace) -> None:
    """Create a namespace for an ordinary host; its addresses work at once."""
    namespace.create()
    namespace.sysctl(
        {"ipv6/conf/default/accept_dad": 0, "ipv6/conf/default/dad_transmits": 0, "ipv6/conf/default/accept_ra": 0}
    )


def hand_to_program(namespace: Namespace, ports: Sequence[str]) -> None:
    """Bring ports up for a program with packet sockets or XDP.

    Received frames are dropped after the program has seen them, so that the kernel's stack does no work
    on them. The queue discipline never holds a frame. Without one, packet sockets resend a frame late
    if the other end's queue was full, instead of losing it.
    """
    namespace.ip(*(f"link set {port} up" for port in ports))
    for port in ports:
        namespace.do(["tc", "qdisc", "add", "dev", port, "root", "pfifo", "limit", "10000"])
    chains = (
        f'chain {port} {{ type filter hook ingress device "{port}" priority 0; policy drop; }}\n' for port in ports
    )
    namespace.nft(f"table netdev discard {{\n{''.join(chains)}}}\n")


def finish_tester(tester: Namespace, ports: Sequence[str] = TESTER_PORTS) -> None:
    """Bring the tester's ports up.

    They receive by NAPI (``gro on``), in their own queue. Otherwise frames for the tester would share
    the queue of frames for the DUT, and an overloaded DUT would make the *tester* lose frames. The
    engine has NAPI without GRO, which merges frames, while it has the ports.
    """
    hand_to_program(tester, ports)
    for port in ports:
        tester.do(["ethtool", "--features", port, "gro", "on"])


def connect(tester: Namespace, dut: Namespace, mtu: int, cables: Sequence[tuple[str, str]] = CABLES) -> None:
    """Create the cables between the namespaces; ``mtu`` in bytes."""
    tester.ip(
        *(f"link add {near} mtu {mtu} type veth peer name {far} netns {dut.name} mtu {mtu}" for near, far in cables)
    )


def connect_directly(tester: Namespace, mtu: int) -> None:
    """Create one cable tl-tr between the tester's ports; ``mtu`` in bytes."""
    tester.ip(f"link add {TESTER_PORTS[0]} mtu {mtu} type veth peer name {TESTER_PORTS[1]} mtu {mtu}")


def prepare_router(dut: Namespace) -> None:
    """Create the DUT's namespace as a router for both IP versions.

    It has the default settings of a router, with two exceptions: no reverse path filter (many networks
    are behind one address) and no duplicate address detection (addresses work at once). ARP and NDP
    are the kernel's own.
    """
    dut.create()
    dut.sysctl({
        **dict.fromkeys(FORWARDING, 1),
        "ipv4/conf/all/rp_filter": 0,
        "ipv4/conf/default/rp_filter": 0,
        "ipv6/conf/all/accept_dad": 0,
        "ipv6/conf/default/accept_dad": 0,
        "ipv6/conf/default/dad_transmits": 0,
    })  # fmt: skip


def send_whole_frames(dut: Namespace, ports: Sequence[str] = DUT_PORTS) -> None:
    """Turn segmentation offloads off on the DUT's ports: only then does the other end receive by NAPI."""
    for port in ports:
        dut.do(["ethtool", "--features", port, "tso", "off", "gso", "off"])


def start_router(dut: Namespace, ports: Sequence[str] = DUT_PORTS) -> None:
    """Bring up the ports of a DUT whose kernel forwards."""
    dut.sysctl(
        {f"{version}/neigh/{port}/gc_stale_time": NEIGHBOUR_LIFE_S for version in ("ipv4", "ipv6") for port in ports}
    )
    dut.ip(*(f"link set {port} up" for port in ("lo", *ports)))


def confine(dut: Namespace, cores: Collection[int], ports: Sequence[str] = DUT_PORTS) -> None:
    """Run the DUT kernel's receive processing on ``cores`` (receive packet steering), off the tester's
    cores. Of several, a hash of addresses and ports selects one.

    This has no effect on a machine with one core.
    """
    if (os.cpu_count() or 1) > 1:
        mask = core_mask(cores)
        dut.write({f"/sys/class/net/{port}/queues/rx-*/rps_cpus": mask for port in ports})


def core_mask(cores: Collection[int]) -> str:
    """Cores as a bitmap of the kernel: hexadecimal, commas between words of 32 bits."""
    bits = sum(1 << core for core in set(cores))
    words = range(max(cores) // 32, -1, -1)
    first, *others = ((bits >> 32 * word) & 0xFFFFFFFF for word in words)
    return ",".join([f"{first:x}", *(f"{word:08x}" for word in others)])
