# SPDX-License-Identifier: Apache-2.0
"""Network namespaces of the host with TAP interfaces as cables to a guest's cards, made by plain
commands as a user would: none of the labs' code."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

NAMESPACE = f"dutperf-cards-{os.getpid()}"
LEFT, RIGHT = "left", "right"
"""The TAP interfaces."""

_SWITCH = """
link add switch type bridge mcast_snooping 0
link set left master switch
link set right master switch
link set switch up
"""
_ROUTER = """
address add 198.18.0.1/24 dev left
address add 198.19.0.1/24 dev right
"""
_TAYGA = """
-6 address add 2001:2::1/64 dev left nodad
address add 198.19.0.1/24 dev right
link set nat64 mtu 2000 up
route add 198.18.0.0/24 dev nat64
route add 2001:2:0:1000::/64 dev nat64
route add 2001:2:0:2000::1/128 dev nat64
"""
_TAYGA_CONF = """
tun-device nat64
ipv4-addr 198.18.255.254
ipv6-addr 2001:2:0:2000::1
map 198.18.0.2 2001:2::2
map 198.19.0.2 2001:2:0:1000::2
"""


def inside(*argv: str) -> str:
    """Output of a command in the namespace."""
    done = subprocess.run(["ip", "netns", "exec", NAMESPACE, *argv], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{argv}: {done.stderr}"
    return done.stdout


@contextlib.contextmanager
def taps(queues: int = 1) -> Iterator[None]:
    """The namespace with both cables, gone afterwards; they come up when QEMU has them."""
    subprocess.run(["ip", "netns", "add", NAMESPACE], check=True)
    try:
        inside(
            "sysctl",
            "-qw",
            "net.ipv6.conf.default.accept_dad=0",
            "net.ipv4.ip_forward=1",
            "net.ipv6.conf.all.forwarding=1",
        )
        for name in (LEFT, RIGHT):
            inside("ip", "tuntap", "add", name, "mode", "tap", *(["multi_queue"] if queues > 1 else []))
            inside("ip", "link", "set", name, "up")
        yield
    finally:
        subprocess.run(["ip", "netns", "delete", NAMESPACE], check=True)


def cable(name: str, queues: int = 1) -> str:
    """QEMU's end of a TAP interface, as a machine is told of it."""
    return f"tap,ifname={name},script=no,downscript=no" + (f",queues={queues}" if queues > 1 else "")


def switch() -> None:
    """A bridge that joins both cables."""
    _ip(_SWITCH)


def no_switch() -> None:
    """Take the bridge away."""
    inside("ip", "link", "delete", "switch")


@contextlib.contextmanager
def relay() -> Iterator[None]:
    """``relay.py`` between the cables, which loses, doubles and reorders frames of any kind."""
    program = Path(__file__).with_name("relay.py")
    process = subprocess.Popen(["ip", "netns", "exec", NAMESPACE, sys.executable, str(program), LEFT, RIGHT])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def router(limit_fps: int) -> None:
    """The kernel's router, which forwards that many frames/s each way and drops the rest."""
    _ip(_ROUTER)
    rules = [f"iifname {name} limit rate over {limit_fps}/second burst 50 packets drop" for name in (LEFT, RIGHT)]
    chain = "\n".join(["type filter hook forward priority 0", *rules])
    inside("nft", f"table ip limited {{\nchain forward {{\n{chain}\n}}\n}}")


@contextlib.contextmanager
def tayga(directory: Path) -> Iterator[None]:
    """TAYGA between IPv6 on the left and IPv4 on the right."""
    file, log = directory / "tayga.conf", directory / "tayga.log"
    file.write_text(f"{_TAYGA_CONF}data-dir {directory}\n")
    inside("tayga", "--config", str(file), "--mktun")
    _ip(_TAYGA)
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["ip", "netns", "exec", NAMESPACE, "stdbuf", "--output=L", "tayga", "--config", str(file), "-d"],
            stdout=output,
            stderr=output,
        )
    try:
        deadline_s = time.monotonic() + 30
        while "TAYGA's IPv6 address" not in log.read_text():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline_s, log.read_text()
            time.sleep(0.05)
        yield
    finally:
        process.kill()
        process.wait()


def _ip(commands: str) -> None:
    for line in commands.strip().splitlines():
        inside("ip", *line.split())
