# SPDX-License-Identifier: Apache-2.0
"""A machine with network cards, in QEMU: what it is made of, its start, and what can be done to it
while it runs.

Its serial ports: the console, kept in a file; the engine's standard input and output; a root shell.
The last two are UNIX sockets here.
"""

from __future__ import annotations

import contextlib
import functools
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cards.image import BUILT, Image, Missing
from cards.qmp import Monitor, Refused
from dutperf.lab.guest.machine import accelerator
from dutperf.lab.guest.shell import Shell, Silent

MODELS: Mapping[str, dict[str, str]] = {
    "e1000": {"driver": "e1000"},
    "e1000e": {"driver": "e1000e"},
    "vmxnet3": {"driver": "vmxnet3"},
    "virtio": {"driver": "virtio-net-pci", "disable-legacy": "on", "iommu_platform": "on", "ats": "on"},
}
"""QEMU's names of the cards that DPDK drives. Virtio's leave the IOMMU aside unless told otherwise."""
STAMPING = "igb"
"""QEMU's name, and the driver's, of a card that stamps frames: an Intel 82576, from QEMU 8.1 on."""
BOOT_S = 120
"""Seconds that the guest has to boot: ten are enough where nobody else works."""
MEMORY_MB = 3072
HUGE_PAGES_FILE = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
HUGE_PAGES = 700
"""Of 2 MB, for two queues and long frames."""

_HOST_FILES = (
    "-fsdev",
    "local,id=files,path=/,security_model=none,readonly=on,multidevs=remap",
    "-device",
    "virtio-9p-pci,fsdev=files,mount_tag=host",
)

Cable = str
"""What follows ``-netdev``, without the id."""


_UNPACKED = BUILT / "qemu/usr"
_LIBRARIES = _UNPACKED / "lib/x86_64-linux-gnu"
_EMULATORS = (
    ("qemu-system-x86_64",),
    (
        *("env", f"QEMU_MODULE_DIR={_LIBRARIES}/qemu", f"{_UNPACKED}/lib64/ld-linux-x86-64.so.2"),
        *("--library-path", f"{_LIBRARIES}:{_LIBRARIES}/pulseaudio", f"{_UNPACKED}/bin/qemu-system-x86_64"),
        *("-L", f"{_UNPACKED}/share/qemu", "-L", f"{_UNPACKED}/share/seabios"),
    ),
)
"""QEMU of this machine, and the one that ``scripts/setup cards`` unpacks, with libraries of its own."""


@functools.cache
def emulator(driver: str) -> tuple[str, ...]:
    """The first command of QEMU that has this card.

    Raises:
        Missing: none has it.
    """
    for command in _EMULATORS:
        asked = subprocess.run([*command, "-device", f"{driver},help"], capture_output=True, check=False)
        if asked.stdout:  # the status says nothing
            return command
    raise Missing(f"no QEMU here emulates {driver} (from 8.1 on): run scripts/setup cards")


@dataclass(frozen=True)
class Machine:
    """What QEMU is told."""

    model: str
    cables: Sequence[Cable] = ("hubport,hubid=0", "hubport,hubid=0")
    """One for each card; by default the two cards are joined by a hub."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Further properties of the cards."""
    iommu: bool = True
    huge_pages: int = HUGE_PAGES
    """That the kernel reserves when it starts."""
    shows_host: bool = False
    """Whether the host's files can be mounted in the guest, read-only, by 9p as ``host``."""
    netns: str | None = None
    """Where QEMU runs, for cables that are TAP interfaces."""

    def command(self, image: Image, directory: Path, accelerator: str) -> list[str]:
        """The command line."""
        iommu = ["-device", "intel-iommu,intremap=on,caching-mode=on"] if self.iommu else []
        processor = (
            ["-accel", "kvm", "-cpu", "host"] if accelerator == "kvm" else ["-accel", "tcg,thread=multi", "-cpu", "max"]
        )
        interrupts = ",kernel-irqchip=split" if accelerator == "kvm" else ""
        append = (
            "console=ttyS0 quiet loglevel=5 panic=-1 no_timer_check intel_iommu=on iommu=pt iomem=relaxed"
            f" hugepages={self.huge_pages}"
        )
        serial = (
            f"file,id=console,path={directory}/console",
            *(f"socket,id={name},path={directory}/{name},server=on,wait=off" for name in ("engine", "shell")),
        )
        return [
            *("setpriv", "--pdeathsig", "KILL", "--"),  # whoever ends these tests, by whatever signal, ends the machine
            *([] if self.netns is None else ["ip", "netns", "exec", self.netns]),
            *(*emulator(self.device(0)["driver"]), "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
            *("-machine", f"q35{interrupts}", *processor, "-smp", "2", "-m", str(MEMORY_MB), *iommu),
            *("-kernel", str(image.kernel), "-initrd", str(image.initramfs), "-append", append),
            *(
                word
                for port in serial
                for word in ("-chardev", port, "-serial", f"chardev:{port.split('id=')[1].split(',')[0]}")
            ),
            *("-qmp", f"unix:{directory}/monitor,server=on,wait=off"),
            *(_HOST_FILES if self.shows_host else []),
            *(word for number, cable in enumerate(self.cables) for word in self._card(number, cable)),
        ]

    def device(self, number: int) -> dict[str, str]:
        """A card, as QEMU is told of it."""
        place = {
            "id": f"card{number}",
            "netdev": f"cable{number}",
            "bus": f"slot{number}",
            "mac": f"02:00:00:00:00:0{number + 1}",
        }
        return (MODELS | {STAMPING: {"driver": STAMPING}})[self.model] | place | self.options

    def _card(self, number: int, cable: Cable) -> list[str]:
        """A card in a slot of its own, from which it can be taken."""
        return [
            *("-device", f"pcie-root-port,id=slot{number},chassis={number + 1},addr=0x{number + 4:x}"),
            *("-netdev", f"{cable},id=cable{number}", "-device", _properties(self.device(number))),
        ]


@dataclass
class Guest:
    """A machine that runs."""

    machine: Machine
    directory: Path
    shell: Shell
    monitor: Monitor
    cards: list[str] = field(default_factory=list)
    """PCI addresses of the cards, in the order of the cables."""
    trials: list[slice] = field(default_factory=list)
    """Where in what the console said the trials were."""

    def run(self, script: str, timeout_s: float = 60) -> str:
        """Output of a shell script in the guest; see :meth:`dutperf.lab.guest.shell.Shell.run`."""
        return self.shell.run(script, timeout_s)

    def console(self) -> str:
        """What the kernel and the engine's standard error have said so far."""
        return (self.directory / "console").read_text(errors="replace")

    def start_engine(self) -> tuple[str, ...]:
        """Start a new engine; returns the ``engine.command`` that leads to it."""
        self.run("start-engine")
        return ("sh", "-c", f"exec socat - UNIX-CONNECT:{self.directory}/engine", "engine")

    def stop_engine(self) -> None:
        """End the engine: at the end of a serial line it does not notice that nobody is there any
        more."""
        self.run("killall dutperf-engine; while pidof dutperf-engine > /dev/null; do usleep 50000; done")

    def set_link(self, card: int, up: bool) -> None:
        """Pull or plug a card's cable."""
        self.monitor.execute("set_link", name=f"card{card}", up=up)

    def unplug(self, card: int) -> None:
        """Ask the guest to let go of a card, and take it away then."""
        self.monitor.execute("device_del", id=f"card{card}")

    def tear_out(self, card: int) -> None:
        """Take a card away at once. The slot's power is cut by its own register (PCI Express
        7.5.3.10, Slot Control)."""
        self.run(f"tear-out 0000:00:{card + 4:02x}.0")

    def plug(self, card: int) -> None:
        """Put a card back that was taken away, and give it to vfio-pci."""
        deadline_s = time.monotonic() + 30
        while True:
            try:
                self.monitor.execute("device_add", **self.machine.device(card))
                break
            except Refused:  # the old one is not quite gone
                if time.monotonic() > deadline_s:
                    raise
                time.sleep(0.1)
        self.run(
            f"until [ -e /sys/bus/pci/devices/{self.cards[card]} ]; do usleep 100000; done; bind vfio-pci"
            f" {self.cards[card]}"
        )


@contextlib.contextmanager
def running(machine: Machine, image: Image) -> Iterator[Guest]:
    """The machine, up, with its cards at vfio-pci; gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="dutperf-cards-") as name, _started(machine, image, Path(name)) as guest:
        listed = guest.run(
            "for device in /sys/bus/pci/devices/*; do case $(cat $device/class) in 0x02*) echo ${device##*/} ;; esac;"
            " done"
        )
        guest.cards = listed.split()
        yield guest


@contextlib.contextmanager
def _started(machine: Machine, image: Image, directory: Path) -> Iterator[Guest]:
    log = directory / "qemu.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            machine.command(image, directory, accelerator()),
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        _await_sockets(process, directory, log)
        shell, monitor = Shell(directory / "shell"), Monitor(directory / "monitor")
        try:
            shell.await_ready(BOOT_S)
        except Silent as silent:
            raise Silent(
                f"{silent}; its console: {(directory / 'console').read_text(errors='replace')[-2000:]}"
            ) from None
        yield Guest(machine, directory, shell, monitor)
        shell.close()
        monitor.close()
    finally:
        process.kill()
        process.wait()


def _properties(device: Mapping[str, str]) -> str:
    return ",".join(f"{name}={value}" for name, value in device.items())


def _await_sockets(process: subprocess.Popen[bytes], directory: Path, log: Path) -> None:
    deadline_s = time.monotonic() + 30
    while not all((directory / name).exists() for name in ("engine", "shell", "monitor")):
        if process.poll() is not None or time.monotonic() > deadline_s:
            raise RuntimeError(f"QEMU did not start: {log.read_text(errors='replace')}")
        time.sleep(0.02)
