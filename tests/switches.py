# SPDX-License-Identifier: Apache-2.0
"""Switches of others, joined by sockets: ``dpdk-testpmd`` and Open vSwitch, started by hand in a
folder of the test's own. They use core 1."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

START_LIMIT_S = 60.0
_VSWITCHD = "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk"
_HUGE_PAGES = Path("/sys/kernel/mm/hugepages/hugepages-2048kB")


def core() -> int:
    """Of a switch: the last one that this process may use."""
    return max(os.sched_getaffinity(0))


def cores() -> dict[str, list[int]]:
    """For ``open``: the tester's loops would take every core otherwise, and starve the switch."""
    return {"cores": [min(os.sched_getaffinity(0))], "dut_cores": [core()]}


def await_true(condition: Callable[[], bool], what: str, limit_s: float = START_LIMIT_S) -> None:
    """Wait until it holds.

    Raises:
        AssertionError: it does not in time.
    """
    end_s = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end_s, f"{what} within {limit_s:g} s"
        time.sleep(0.05)


class Testpmd:
    """Forwards between two ports, given as DPDK's virtual devices, once it is told to."""

    def __init__(self, folder: Path, *devices: str, options: tuple[str, ...] = ()) -> None:
        self.log = folder / "testpmd.log"
        memory = ("--no-huge", "--no-shconf", "-m", "192", "--no-pci", "--no-telemetry", "--iova-mode=va")
        command = [
            "stdbuf",
            "--output=L",
            "dpdk-testpmd",
            f"--lcores=0@{core()},1@{core()}",
            "--main-lcore=0",
            *memory,
            *(f"--vdev={device}" for device in devices),
        ]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [*command, "--", "--interactive", "--total-num-mbufs=8192", *options],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                text=True,
            )
        await_true(lambda: self.process.poll() is not None or "testpmd>" in self.log.read_text(), "testpmd starts")
        assert self.process.poll() is None, self.log.read_text()

    def tell(self, command: str) -> None:
        """Give it a command, as at its prompt."""
        assert self.process.stdin is not None
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        """End it without a word to the other end."""
        self.process.kill()
        self.process.wait()


@contextmanager
def running_testpmd(
    folder: Path, *devices: str, forwards: bool = True, options: tuple[str, ...] = ()
) -> Iterator[Testpmd]:
    """One that runs, and forwards what one port receives by the other."""
    switch = Testpmd(folder, *devices, options=options)
    try:
        if forwards:
            switch.tell("start")
            await_true(lambda: "packet forwarding" in switch.log.read_text(), "testpmd forwards")
        yield switch
    finally:
        switch.kill()


@contextmanager
def huge_pages(megabytes: int) -> Iterator[bool]:
    """Free huge pages of 2 MB, given back afterwards; False where the kernel has none to give."""
    count, free = _HUGE_PAGES / "nr_hugepages", _HUGE_PAGES / "free_hugepages"
    wanted = megabytes // 2
    missing = 0
    try:
        before = int(free.read_text())
        count.write_text(str(int(count.read_text()) + wanted))
        missing = wanted - (int(free.read_text()) - before)
        yield missing <= 0
    except OSError:
        yield False
    finally:
        with suppress(OSError):
            count.write_text(str(max(0, int(count.read_text()) - (wanted - missing))))


class OpenVSwitch:
    """An ``ovs-vswitchd`` with DPDK, its database and sockets in a folder, without a network of the
    machine's. Its bridge joins two ports."""

    def __init__(self, folder: Path, interfaces: dict[str, dict[str, str]]) -> None:
        self.folder = folder
        self._database = f"unix:{folder}/db.sock"
        names = ("OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR")
        self._environment = os.environ | dict.fromkeys(names, str(folder))
        self._processes: list[subprocess.Popen[bytes]] = []
        try:
            self._start()
            self._add_bridge(interfaces)
        except BaseException:
            self.end()
            raise

    def _start(self) -> None:
        self._run("ovsdb-tool", "create", f"{self.folder}/conf.db", "/usr/share/openvswitch/vswitch.ovsschema")
        self._daemon(
            "ovsdb-server",
            f"{self.folder}/conf.db",
            f"--remote=punix:{self.folder}/db.sock",
            f"--unixctl={self.folder}/ovsdb.ctl",
        )
        await_true((self.folder / "db.sock").is_socket, "ovsdb-server starts")
        self._vsctl("--no-wait", "init")
        self._start_switch()

    def _start_switch(self) -> None:
        mask = hex(1 << core())
        options = {
            "dpdk-init": "true",
            "dpdk-lcore-mask": mask,
            "pmd-cpu-mask": mask,
            "dpdk-extra": "--no-pci --iova-mode=va --single-file-segments",
        }
        self._vsctl(
            "--no-wait",
            "set",
            "Open_vSwitch",
            ".",
            *(f'other_config:{key}="{value}"' for key, value in options.items()),
        )
        self._daemon(
            "unshare",
            "--net",
            _VSWITCHD,
            self._database,
            f"--unixctl={self.folder}/vswitchd.ctl",
            f"--log-file={self.folder}/vswitchd.log",
        )
        await_true(
            lambda: (
                (self.folder / "vswitchd.ctl").exists()
                and self._vsctl("get", "Open_vSwitch", ".", "dpdk_initialized") == "true"
            ),
            "vswitchd starts",
        )

    def _add_bridge(self, interfaces: dict[str, dict[str, str]]) -> None:
        self._vsctl("add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=netdev", "fail-mode=secure")
        for name, columns in interfaces.items():
            self._vsctl(
                "add-port",
                "br0",
                name,
                "--",
                "set",
                "Interface",
                name,
                *(f"{key}={value}" for key, value in columns.items()),
            )
        left, right = (self._vsctl("get", "Interface", name, "ofport") for name in interfaces)
        for this, other in ((left, right), (right, left)):
            self._run("ovs-ofctl", "add-flow", f"unix:{self.folder}/br0.mgmt", f"in_port={this},actions=output:{other}")

    def statistics(self, name: str) -> str:
        """What it counted on an interface."""
        return self._vsctl("get", "Interface", name, "statistics")

    def end(self) -> None:
        """End both processes."""
        for process in reversed(self._processes):
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()
            process.wait()

    def _daemon(self, *command: str) -> None:
        with (self.folder / f"{Path(command[0]).name}.out").open("w") as out:
            self._processes.append(
                subprocess.Popen(command, env=self._environment, stdout=out, stderr=subprocess.STDOUT, cwd=self.folder)
            )

    def _vsctl(self, *words: str) -> str:
        return self._run("ovs-vsctl", f"--db={self._database}", "--timeout=60", *words)

    def _run(self, *command: str) -> str:
        done = subprocess.run(
            command, env=self._environment, capture_output=True, text=True, check=False, timeout=START_LIMIT_S
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout.strip()


class VlanBridges(OpenVSwitch):
    """Without DPDK, in a network namespace: a VLAN-aware bridge at each of its ports. The port is the trunk; the access
    port leads back to the namespace, where it is called as the port with the number of the VLAN."""

    def __init__(self, folder: Path, namespace: str, ports: tuple[str, ...], vlan: int) -> None:
        self._namespace, self._vlan = namespace, vlan
        super().__init__(folder, {port: {} for port in ports})

    def _start_switch(self) -> None:
        control = self.folder / "vswitchd.ctl"
        self._daemon("ip", "netns", "exec", self._namespace, "ovs-vswitchd", self._database, f"--unixctl={control}")
        await_true(control.exists, "vswitchd starts")

    def _add_bridge(self, interfaces: dict[str, dict[str, str]]) -> None:
        for port in interfaces:
            bridge, access, inside = f"br-{port}", f"{port}-in", f"{port}{self._vlan}"
            self._run("ip", "-n", self._namespace, "link", "add", inside, "type", "veth", "peer", "name", access)
            for end in (inside, access):
                self._run("ip", "-n", self._namespace, "link", "set", end, "up")
            self._vsctl("add-br", bridge, "--", "set", "bridge", bridge, "datapath_type=netdev")
            self._vsctl("add-port", bridge, port, f"trunks={self._vlan}")
            self._vsctl("add-port", bridge, access, f"tag={self._vlan}")


def has_open_vswitch() -> bool:
    """Whether it is installed."""
    return Path(_VSWITCHD).exists() and shutil.which("ovsdb-server") is not None
