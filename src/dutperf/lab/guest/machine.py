# SPDX-License-Identifier: Apache-2.0
"""A machine in QEMU whose two network cards are TAP interfaces in the DUT's namespace, each bridged to its cable.

With KVM where the processor and the kernel allow it, else by software emulation: a hundred times slower, which the
results name. The whole machine runs on the DUT's core.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from dutperf.lab import outage
from dutperf.lab.definition import COMMAND_S, ResetOptions
from dutperf.lab.errors import LabError
from dutperf.lab.guest import initramfs, shell
from dutperf.lab.guest.packages import Kernel
from dutperf.lab.netns import DUT_PORTS, FORWARDING, NEIGHBOUR_LIFE_S, run, standalone
from dutperf.lab.site import Site, await_start

Accelerator = Literal["kvm", "tcg"]
EMULATIONS: Mapping[Accelerator, str] = {"kvm": "KVM", "tcg": "software emulation (QEMU TCG)"}
PORTS = ("eth0", "eth1")
"""The guest's cards, left and right."""
MACS = ("02:00:00:00:01:01", "02:00:00:00:01:02")
MEMORY_MB = 512
BOOT_S = 300.0
"""Time limit for the boot, in seconds: emulated it takes ten where nobody else works, two minutes on a busy machine."""
READY, FAILED = "dutperf: the guest is ready", "dutperf: the guest is not ready"
"""What it says on its console."""
DRIVERS = ("virtio_pci", "virtio_net")
NFTABLES = (
    "crc32c_generic",  # by its name in no list of dependencies: libcrc32c asks the kernel for the algorithm
    *("nf_tables", "nft_objref"),
)
"""Modules for rules with named counters."""
INIT = """#!/bin/sh
# First process of the guest: file systems, drivers, its set-up, then a shell for the host.
export PATH=/usr/local/bin:/usr/bin:/usr/sbin:/bin:/sbin HOME=/root
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
exec < /dev/console > /dev/console 2>&1
for module in MODULES; do modprobe $module; done
stty -F /dev/ttyS1 raw -echo
ip link set lo up
if sh -e /usr/local/bin/set-up; then echo 'READY'; else echo 'FAILED'; fi
while :; do agent <> /dev/ttyS1 >&0; done
"""


class GuestOptions(ResetOptions):
    """The machine."""

    accelerator: Annotated[
        Literal["auto", "kvm", "tcg"],
        Field(description="auto: KVM where it works, else tcg; kvm; tcg: software emulation, slow"),
    ] = "auto"

    def chosen(self) -> Accelerator:
        return accelerator() if self.accelerator == "auto" else self.accelerator


def accelerator() -> Accelerator:
    """``kvm`` where the processor virtualises and the kernel lets us use it, else ``tcg``. A
    /dev/kvm alone says little: in a sandbox it may not work."""
    flags = next(
        (line.split() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("flags")), []
    )
    return "kvm" if {"vmx", "svm"} & set(flags) and os.access("/dev/kvm", os.R_OK | os.W_OK) else "tcg"


@dataclass(frozen=True)
class Software:
    """What a guest has besides busybox, and the script that sets it up."""

    set_up: str = ""
    drivers: Sequence[str] = ()
    """Modules of its kernel, besides those of the cards."""
    modules: Sequence[Path] = ()
    """Files of modules, besides its kernel's."""
    programs: Sequence[Path] = ()
    places: Sequence[Path] = ()
    """Where the libraries of the programs may be, besides the usual places."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Contents by path below the root."""


def start(site: Site, mtu: int, options: GuestOptions, kernel: Kernel, software: Software) -> None:
    """Create the namespaces, cables of this MTU and bridges, and boot the guest; returns when it is set up. Raises
    LabError: it does not start."""
    site.add_switch(mtu, [site.dut_core])
    for cable, tap in zip(DUT_PORTS, _taps(), strict=True):
        bridge = f"bridge-{cable}"
        site.dut.ip(
            f"link add {bridge} mtu {mtu} type bridge stp_state 0 mcast_snooping 0",
            f"tuntap add {tap} mode tap",
            f"link set {tap} mtu {mtu} master {bridge} up",
            f"link set {cable} master {bridge}",
            f"link set {bridge} up",
        )
    image = build(site.directory, kernel, software)
    log, console = site.directory / "qemu.log", site.directory / "console"
    daemon = site.start_daemon(command(site.directory, kernel, image, options), log)
    name = f"lab {site.record.lab}: the emulated machine"
    await_start(daemon, log, name, lambda: _said(console), limit_s=BOOT_S)
    said = [line for line in console.read_text(errors="replace").splitlines() if line.strip() and line != FAILED]
    if READY not in said:
        raise LabError(f"{name} did not start; last output: {said[-1] if said else 'nothing'}")


def _said(console: Path) -> bool:
    text = console.read_text(errors="replace") if console.exists() else ""
    return READY in text or FAILED in text


def build(directory: Path, kernel: Kernel, software: Software) -> Path:
    root = directory / "root"
    initramfs.lay_out(root)
    busybox = Path(run(["sh", "-c", "command -v busybox"]).strip())
    initramfs.install_busybox(root, busybox)
    drivers = (*DRIVERS, *software.drivers)
    initramfs.install_modules(root, kernel.modules, drivers, software.modules)
    loaded = (*drivers, *(file.stem for file in software.modules))
    init = INIT.replace("MODULES", " ".join(loaded)).replace("READY", READY).replace("FAILED", FAILED)
    initramfs.write_script(root / "init", init)
    initramfs.write_script(root / "usr/local/bin/agent", shell.AGENT)
    initramfs.write_script(root / "usr/local/bin/set-up", software.set_up)
    for program in software.programs:
        (root / "usr/bin" / program.name).unlink(missing_ok=True)  # busybox has some of that name
        initramfs.copy_with_links(program, root, Path("/usr/bin"))
        for library in initramfs.libraries(program, software.places):
            own = any(library.is_relative_to(place) for place in software.places)
            initramfs.copy_with_links(library, root, Path("/usr/lib") if own else None)
    for path, text in software.files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return initramfs.pack(root, directory / "initramfs")


def command(directory: Path, kernel: Kernel, image: Path, options: GuestOptions) -> list[str]:
    processor = {"kvm": ["-accel", "kvm", "-cpu", "host"], "tcg": ["-accel", "tcg", "-cpu", "max"]}[options.chosen()]
    off = ",".join(f"{feature}=off" for feature in ("mq", "gso", "guest_tso4", "guest_tso6", "guest_ufo"))
    cards = [
        word
        for number, tap in enumerate(_taps())
        for word in (
            *("-netdev", f"tap,id=cable{number},ifname={tap},script=no,downscript=no"),
            *(
                "-device",
                f"virtio-net-pci,netdev=cable{number},addr=0x{number + 4:x},mac={MACS[number]},romfile=,{off}",
            ),
        )
    ]
    return [
        *("qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
        *("-machine", "q35", *processor, "-smp", "1", "-m", str(MEMORY_MB)),
        *("-kernel", str(kernel.image), "-initrd", str(image)),
        *("-append", "console=ttyS0 quiet loglevel=4 panic=-1 no_timer_check"),
        *("-chardev", f"file,id=console,path={directory}/console", "-serial", "chardev:console"),
        *("-chardev", f"socket,id=shell,path={directory}/shell,server=on,wait=off", "-serial", "chardev:shell"),
        *cards,
    ]


def _taps() -> tuple[str, str]:
    left, right = (f"tap-{port}" for port in DUT_PORTS)
    return left, right


def ask(site: Site, script: str, lasts_s: float = 0) -> list[str]:
    """The command that runs a script in the guest, up to its first error, and prints what it says. ``lasts_s``: how
    long it waits itself."""
    return standalone(shell, str(site.directory / "shell"), f"set -e\n{script}", f"{COMMAND_S + lasts_s:g}")


def routing(commands: Iterable[str], mtu: int) -> str:
    """The beginning of a set-up: a router of both IP versions, whose addresses work at once; ``commands`` of ``ip``
    give its ports addresses and routes."""
    settings = {
        **dict.fromkeys(FORWARDING, 1),
        **{f"ipv4/conf/{which}/rp_filter": 0 for which in ("all", *PORTS)},
        **{f"ipv6/conf/{which}/accept_dad": 0 for which in ("all", *PORTS)},
        **{f"{version}/neigh/{port}/gc_stale_time": NEIGHBOUR_LIFE_S for version in ("ipv4", "ipv6") for port in PORTS},
    }
    lines = [f"echo {value} > /proc/sys/net/{path}" for path, value in settings.items()]
    lines += [f"ip link set {port} mtu {mtu} up" for port in PORTS]
    # busybox's ip knows no nodad, and needs none without duplicate address detection
    return "".join(f"{line}\n" for line in (*lines, *(f"ip {one.removesuffix(' nodad')}" for one in commands)))


def reset(site: Site, reset_s: float, stop: str = "", start: str = "") -> list[str]:
    """The command that stops the guest's forwarding for ``reset_s`` seconds; ``stop`` and ``start`` are further
    commands in the guest."""

    def turn(value: int) -> str:
        return "; ".join(f"echo {value} > /proc/sys/net/{path}" for path in FORWARDING)

    stopping, starting = ("; ".join(filter(None, steps)) for steps in ((turn(0), stop), (start, turn(1))))
    return ask(site, outage.script(stopping, reset_s, starting), reset_s)


def identity(options: GuestOptions, kernel: Kernel, site: Site) -> dict[str, Any]:
    return {
        "kernel": f"{kernel.release} in QEMU",
        "machine": f"one processor, {MEMORY_MB} MB, virtio-net, by {EMULATIONS[options.chosen()]}",
        "cores": [site.dut_core],
    }
