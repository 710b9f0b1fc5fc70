# SPDX-License-Identifier: Apache-2.0
"""``dutperf ports`` and ``dutperf doctor --fix``: what is shown, what is asked, and that nothing
happens before the answer."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from dutperf import installation
from dutperf.cli import app
from dutperf.cli.commands import doctor as doctor_command
from dutperf.cli.commands import ports as ports_command
from dutperf.cli.output import steps
from dutperf.machine import doctor
from dutperf.machine.access import Done
from dutperf.machine.doctor import Finding
from machines import DEVICES, FakeKernel, but, made_up

A, B = "0000:01:00.0", "0000:01:00.1"


SOFTWARE = """Time stamping parameters for tl:
Capabilities:
\tsoftware-transmit
\tsoftware-receive
\tsoftware-system-clock
PTP Hardware Clock: none
Hardware Transmit Timestamp Modes: none
Hardware Receive Filter Modes: none
"""
HARDWARE = """Time stamping parameters for eth1:
Capabilities:
\thardware-transmit
\tsoftware-transmit
\thardware-receive
\tsoftware-receive
\tsoftware-system-clock
\thardware-raw-clock
PTP Hardware Clock: 0
Hardware Transmit Timestamp Modes:
\toff
\ton
Hardware Receive Filter Modes:
\tnone
"""


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeKernel:
    """eth0 carries the default route, eth1 is free; the command line meets this machine, with
    nobody at the terminal."""
    made = made_up(tmp_path, routes=[{"dst": "default", "dev": "eth0"}])
    made.driver("vfio-pci")
    for address, name, group in ((A, "eth0", "1"), (B, "eth1", "2")):
        made.card(address, group=group)
        made.interface(name, address)
    _meet(made, monkeypatch)
    return made


def _meet(made: FakeKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports_command, "machine", lambda: made)
    monkeypatch.setattr(steps, "on_terminal", lambda: False)


def dutperf(*arguments: str, answer: str | None = None) -> Result:
    return CliRunner(env={"COLUMNS": "100"}).invoke(app, list(arguments), input=answer)


def test_the_table_names_every_card_and_interface(kernel: FakeKernel) -> None:
    kernel.interface("tl", linkinfo={"info_kind": "veth"})
    kernel.stamps["tl"] = SOFTWARE
    result = dutperf("ports")
    assert result.exit_code == 0
    rows = [line.split() for line in result.stdout.splitlines()]
    assert [A, "eth0", "e1000e", "-", "up,", "1,000", "Mbit/s", "unknown", "default", "route", "-"] in rows
    assert [B, "eth1", "e1000e", "-", "up,", "1,000", "Mbit/s", "unknown", "-", "af_xdp:eth1"] in rows
    assert ["-", "tl", "(veth)", "-", "-", "up,", "1,000", "Mbit/s", "kernel", "-", "af_xdp:tl"] in rows
    assert result.stdout.splitlines()[-3:] == [
        f"{A}: carries the default route and is never given to DPDK",
        f"{B}: for DPDK: dutperf ports bind {B}",
        f"stamps are unknown: {installation.package('ethtool')}",
    ]


NEWER = HARDWARE.replace("PTP Hardware Clock: 0", "Hardware timestamp provider index: 0")


@pytest.mark.parametrize(
    ("told", "words", "clock"),
    [
        (SOFTWARE, "kernel", None),
        ("Time stamping parameters for lo:\nCapabilities:\n\tsoftware-receive\n\tsoftware-system-clock\n", "-", None),
        (f"{HARDWARE}\tptpv1-l4-sync\n\tptpv2-event\n", "kernel, card (PTP only)", "/dev/ptp0"),
        (f"{HARDWARE}\tall\n", "kernel, card", "/dev/ptp0"),
        (f"{NEWER}\tall\n", "kernel, card", "/dev/ptp0"),
        (None, "unknown", None),
    ],
    ids=["veth", "nobody", "82576", "I350", "a newer ethtool", "no ethtool"],
)
def test_who_stamps_the_frames_of_an_interface(
    kernel: FakeKernel, told: str | None, words: str, clock: str | None
) -> None:
    kernel.stamps.update({} if told is None else {"eth1": told})
    port = json.loads(dutperf("ports", "--json").stdout)["ports"][1]
    assert (port["stamps"], port["clock"]) == (words, clock)


def opened(kernel: FakeKernel, process: int, name: str, flags: str) -> None:
    kernel.file(f"proc/{process}/comm", name)
    kernel.file(f"proc/{process}/fdinfo/3", f"pos:\t0\nflags:\t{flags}")
    (kernel.root / f"proc/{process}/fd").mkdir()
    (kernel.root / f"proc/{process}/fd/3").symlink_to("/dev/ptp0")


@pytest.mark.parametrize(
    ("there", "flags", "text"),
    [
        (True, None, ""),
        (True, "0100000", ""),
        (True, "0100002", ", which process 815 (ptp4l) may set: end it before --stamps card"),
        (False, None, ", which is not there: load the driver's PTP support, or give the container the device"),
    ],
    ids=["free", "read by another program", "set by another program", "no device"],
)
def test_a_cards_clock_is_named_with_what_is_in_its_way(
    kernel: FakeKernel, there: bool, flags: str | None, text: str
) -> None:
    kernel.stamps["eth1"] = f"{HARDWARE}\tall\n"
    if there:
        kernel.file("dev/ptp0")
    if flags is not None:
        opened(kernel, 815, "ptp4l", flags)
    assert f"eth1: its card's time stamps are by /dev/ptp0{text}" in dutperf("ports").stdout.splitlines()


def test_for_a_program(kernel: FakeKernel) -> None:
    del kernel
    first, second = json.loads(dutperf("ports", "--json").stdout)["ports"]
    assert (first["address"], first["default_route"], first["port"]) == (A, True, None)
    assert second == {
        "address": B,
        "interface": "eth1",
        "kind": None,
        "model": "8086:10d3",
        "mac": "02:00:00:00:00:01",
        "driver": "e1000e",
        "numa_node": None,
        "link": True,
        "speed_mbps": 1000,
        "stamps": "unknown",
        "clock": None,
        "clock_hindrance": None,
        "iommu_group": "2",
        "default_route": False,
        "use": None,
        "port": "af_xdp:eth1",
        "dpdk": f"for DPDK: dutperf ports bind {B}",
    }


def test_binding_shows_what_it_does_and_how_to_undo_it(kernel: FakeKernel) -> None:
    result = dutperf("ports", "bind", "eth1", "--yes")
    assert result.exit_code == 0
    assert result.stderr.splitlines() == [
        f"dutperf: {B} (eth1) goes from the kernel's e1000e to vfio-pci:",
        f"    echo vfio-pci > /{DEVICES}/{B}/driver_override",
        f"    echo {B} > /sys/bus/pci/drivers/e1000e/unbind",
        f"    echo {B} > /sys/bus/pci/drivers_probe",
        "dutperf: these changes last until the next reboot",
    ]
    assert result.stdout.splitlines() == [
        f"done: {B} (eth1) goes from the kernel's e1000e to vfio-pci",
        f"undo: dutperf ports unbind {B}",
    ]
    assert kernel.target(f"{DEVICES}/{B}/driver") == "vfio-pci"
    kernel.shown.pop()  # its interface went with the driver
    back = dutperf("ports", "unbind", B, "--yes")
    assert back.stdout.splitlines() == [
        f"done: {B} goes from vfio-pci back to the kernel",
        f"undo: dutperf ports bind {B}",
    ]
    assert kernel.target(f"{DEVICES}/{B}/driver") == "e1000e"


def test_what_is_done_already_is_said_and_asks_nothing(kernel: FakeKernel) -> None:
    result = dutperf("ports", "unbind", B)
    assert (result.exit_code, result.stderr) == (
        0,
        f"dutperf: {B} already has the kernel's driver e1000e: nothing to do\n",
    )
    assert kernel.written == []


@pytest.mark.parametrize(
    ("answer", "driver", "status"), [("y\n", "vfio-pci", 0), ("n\n", "e1000e", 1), ("\n", "e1000e", 1)]
)
def test_somebody_at_the_terminal_is_asked(
    answer: str, driver: str, status: int, kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "on_terminal", lambda: True)
    result = dutperf("ports", "bind", B, answer=answer)
    assert (result.exit_code, kernel.target(f"{DEVICES}/{B}/driver")) == (status, driver)
    assert ("nothing was changed" in result.stderr) == (status == 1)


REFUSED = [
    (("bind", B), "dutperf: there is no terminal to ask on: give --yes to do this without asking"),
    (
        ("bind", A, "--yes", "--force"),
        f"dutperf: {A} (eth0): carries the default route, so this machine would go offline; choose another card",
    ),
    (
        ("bind", B, "eth7", "--yes"),
        "dutperf: eth7: is neither a PCI address (0000:01:00.0) nor an interface of this network namespace",
    ),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSED)
def test_what_is_refused_is_one_sentence_and_changes_nothing(
    arguments: tuple[str, ...], message: str, kernel: FakeKernel
) -> None:
    result = dutperf("ports", *arguments)
    assert (result.exit_code, result.stdout, kernel.written) == (2, "", [])
    assert result.stderr.splitlines()[-1].startswith(message)


def test_only_root_may(kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    _meet(but(kernel, user=1000), monkeypatch)
    assert dutperf("ports").exit_code == 0
    result = dutperf("ports", "bind", B, "--yes")
    assert (result.exit_code, kernel.written) == (2, [])
    assert result.stderr.endswith("dutperf: this needs root: run it as root\n")


# --- the doctor -----------------------------------------------------------------------------------

MEMORY = "sys/kernel/mm/hugepages/hugepages-2048kB"


@pytest.fixture
def ill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> doctor.Machine:
    """A machine without huge pages, with memory for them."""
    for name, text in {
        f"{MEMORY}/nr_hugepages": "0\n",
        f"{MEMORY}/free_hugepages": "0\n",
        "proc/meminfo": "MemAvailable: 8000000 kB\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    machine = replace(
        doctor_command.this_machine(), root=tmp_path, run=lambda _argv: Done(127), user=0, pause=lambda: None
    )
    monkeypatch.setattr(doctor_command, "this_machine", lambda: machine)
    return machine


def test_the_doctor_says_what_it_could_do_and_does_not_do_it(ill: doctor.Machine) -> None:
    result = dutperf("doctor")
    assert result.exit_code == 0
    assert "--fix: 512 huge pages of 2 MB are reserved (1024 MB)" in " ".join(result.stdout.split())
    assert ill.count(f"{MEMORY}/nr_hugepages") == 0


def test_the_doctor_mends_and_says_how_to_undo_it(ill: doctor.Machine) -> None:
    result = dutperf("doctor", "--fix", "--yes")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-2:] == [
        "done: 512 huge pages of 2 MB are reserved (1024 MB)",
        f"undo: echo 0 > /{MEMORY}/nr_hugepages",
    ]
    assert ill.count(f"{MEMORY}/nr_hugepages") == 512


def test_the_doctor_asks(ill: doctor.Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "on_terminal", lambda: False)
    result = dutperf("doctor", "--fix")
    assert (result.exit_code, ill.count(f"{MEMORY}/nr_hugepages")) == (2, 0)
    assert "give --yes" in result.stderr


def test_a_healthy_machine_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_command, "examine", lambda _machine: [Finding("cores", "ok", "8 cores")])
    monkeypatch.setattr(doctor_command, "repairs", lambda _machine: [])
    result = dutperf("doctor", "--fix")
    assert (result.exit_code, result.stderr) == (0, "dutperf: nothing is missing that --fix could change\n")


def test_yes_to_nothing_is_refused() -> None:
    result = dutperf("doctor", "--yes")
    assert (result.exit_code, result.stderr) == (2, "dutperf: --yes: has no effect without --fix\n")
