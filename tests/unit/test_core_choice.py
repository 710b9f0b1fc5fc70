# SPDX-License-Identifier: Apache-2.0
"""What is made of where the DUT works: cores to keep off, cores to watch, and what the result says."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from test_dut_discovery import DUT, facts, process

from dutperf.engine.client import EngineCommand
from dutperf.engine.factory import cores_of_dut
from dutperf.machine.cpu_sets import siblings
from dutperf.setup import configuration
from dutperf.tester import TesterError
from dutperf.watch import core_choice, namespace_probe, socket_peers
from dutperf.watch.core_choice import CoreChoice, configured, detect
from dutperf.watch.dut_core import DutCores

ENGINE = ("dutperf-engine",)
VETHS = ("af_packet:eth1", "eth2")
ON = {"roles": {"forward_send": 0, "forward_receive": 0, "reverse_send": 0, "reverse_receive": 0}}


@pytest.fixture(autouse=True)
def one_thread_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the machine of the tests has."""
    monkeypatch.setattr(core_choice, "siblings", lambda _core: frozenset())


@pytest.fixture
def probed(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Command lines of probes; what they say is set by :func:`say`."""
    asked: list[list[str]] = []
    monkeypatch.setattr(core_choice, "_probed", lambda argv: asked.append(list(argv)) or facts({"rps": ["2"]}))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return asked


def say(monkeypatch: pytest.MonkeyPatch, seen: dict[str, Any]) -> None:
    monkeypatch.setattr(core_choice, "_probed", lambda _argv: seen)
    monkeypatch.setattr(os, "geteuid", lambda: 0)


def test_it_looks_where_the_engine_will_run(probed: list[list[str]]) -> None:
    choice = detect(["sudo", "-n", "ip", "netns", "exec", "bed", "dutperf-engine"], VETHS)
    assert probed == [
        ["sudo", "-n", "ip", "netns", "exec", "bed", sys.executable, "-I", "-S", namespace_probe.__file__]
    ]
    assert choice.dut_cores == (1,)


@pytest.mark.parametrize(
    "ports",
    [("ring", "ring"), ("null", "null"), ("0000:01:00.0", "0000:01:00.1"), ("vdev:net_memif0", "vdev:net_memif1")],
)
def test_ports_that_lead_to_no_dut_of_this_machine_are_not_looked_behind(
    probed: list[list[str]], ports: tuple[str, str]
) -> None:
    assert detect(ENGINE, ports) == CoreChoice()
    assert probed == []


def test_an_engine_elsewhere_is_said_to_be_out_of_sight(probed: list[list[str]]) -> None:
    choice = detect(["ssh", "host", "dutperf-engine"], VETHS)
    assert (choice.dut_cores, probed) == ((), [])
    assert choice.stated(ON)["core_choice"]["why"].startswith(
        "the DUT's cores could not be detected (the engine is started by ssh): give engine.dut_cores if"
    )


@pytest.mark.parametrize("program", ["exit 3", "echo no json", "echo '{}'", "echo cannot look >&2; exit 1"])
def test_a_probe_that_fails_is_said(program: str, tmp_path: Path) -> None:
    script = tmp_path / "sudo"
    script.write_text(f"#!/bin/sh\n{program}\n")
    script.chmod(0o755)
    choice = detect([str(script), "dutperf-engine"], VETHS)
    assert choice.dut_cores == ()
    assert choice.why.startswith("the DUT's cores could not be detected (")


@pytest.mark.usefixtures("probed")
def test_confined_work_is_kept_off_and_watched() -> None:
    choice = detect(ENGINE, VETHS)
    assert choice.watched(ON) == DutCores((1,), namespaces=(DUT,))
    assert choice.stated(ON) == {
        "core_choice": {
            "tester": [0],
            "dut": [1],
            "why": "the DUT: receive packet steering of west on core 1; the tester's loops have core 0",
        }
    }


def test_a_dut_that_may_be_anywhere_is_watched_where_one_core_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    say(monkeypatch, facts(None, process(9, "tayga", DUT, "0-1"), usable=2))
    choice = detect(ENGINE, VETHS)
    assert choice.dut_cores == ()
    assert choice.watched(ON) == DutCores((1,), namespaces=(DUT,), may_be_idle=True)
    why = (
        "the DUT: tayga (9) on any core, its kernel's work runs on the core of the sender; the tester's loops"
        " have core 0"
    )
    assert choice.stated(ON)["core_choice"]["why"] == why
    say(monkeypatch, facts(None, process(9, "tayga", DUT, "0-3"), usable=4))
    assert detect(ENGINE, VETHS).watched(ON) is None


def test_the_kernels_work_on_the_testers_own_core_is_not_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    say(monkeypatch, facts(usable=2))
    assert detect(ENGINE, VETHS).watched(ON) is None


def test_who_may_not_see_whose_processes_they_are_does_not_take_them_for_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    say(monkeypatch, facts(None, process(9, "tayga", DUT, "1")))
    choice = detect(ENGINE, VETHS)
    assert choice.watched(ON) == DutCores((1,), namespaces=(DUT,), may_be_idle=True)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert choice.watched(ON) is None
    assert choice.dut_cores == (1,)

    assert "nobody watches what others take of these cores: that needs root" in choice.stated(ON)["core_choice"]["why"]


@pytest.mark.parametrize(
    ("argv", "here"),
    [
        (["dutperf-engine"], True),
        (["sudo", "-n", "ip", "netns", "exec", "bed", "dutperf-engine"], True),
        (["ssh", "host", "dutperf-engine"], False),
        (["sudo", "-u", "me", "ssh", "host", "dutperf-engine"], False),
        (["env", "SSH_AUTH_SOCK=/x", "/usr/bin/ssh", "host", "dutperf-engine"], False),
    ],
)
def test_an_engine_behind_a_shell_of_another_machine_is_not_here(argv: list[str], here: bool) -> None:
    assert core_choice.is_here(argv) == here


def test_configured_cores_are_watched_though_sudo_starts_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert at_veths(dut_cores=[1], dut_netns=["dut"], command=["sudo", "-n"]).watched(ON) == DutCores((1,), ("dut",))


def test_a_core_that_both_need_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    say(monkeypatch, facts({"rps": ["1"]}))
    choice = detect(ENGINE, VETHS)
    assert choice.stated(ON)["core_choice"]["why"].endswith(
        "the tester's loops have core 0, where the DUT works too: core 0"
    )
    assert choice.watched(ON) == DutCores((0,), namespaces=(DUT,), by_tester=True)


def test_a_hardware_thread_beside_the_dut_s_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Cores 0 and 4 are one physical core: what the loops do on one slows the DUT on the other."""
    for core, threads in ((0, "0,4"), (4, "0,4"), (1, "1,5")):
        (tmp_path / f"cpu{core}/topology").mkdir(parents=True)
        (tmp_path / f"cpu{core}/topology/thread_siblings_list").write_text(f"{threads}\n")
    monkeypatch.setattr(core_choice, "siblings", lambda core: siblings(core, tmp_path))
    assert (siblings(4, tmp_path), siblings(9, tmp_path)) == ({0}, frozenset())
    why = configured([4], [], here=True).stated(ON)["core_choice"]["why"]
    assert why.endswith("the tester's loops have core 0, hardware threads of the DUT's: core 0")
    assert "hardware" not in configured([1], [], here=True).stated(ON)["core_choice"]["why"]


def test_a_process_whose_core_the_loops_have_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else what it loses because of them would be its own loss."""
    say(monkeypatch, facts(None, process(9, "tayga", DUT, "0")))
    assert detect(ENGINE, VETHS).watched(ON) == DutCores((0,), namespaces=(DUT,), may_be_idle=True, by_tester=True)
    assert at_veths(dut_cores=[0]).watched(ON) == DutCores((0,), namespaces=(DUT,), by_tester=True)


def test_a_dut_that_works_elsewhere_than_the_configuration_says_is_watched_there_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    say(monkeypatch, facts(None, process(9, "tayga", DUT, "1")))
    choice = at_veths(dut_cores=[0])
    assert choice.dut_cores == (0, 1)
    assert choice.why == "the configuration gives the DUT core 0; of it was found besides: tayga (9) on core 1"
    assert choice.watched(ON) == DutCores((0, 1), namespaces=(DUT,), by_tester=True)


def test_a_core_that_this_machine_does_not_have_is_refused(probed: list[list[str]]) -> None:
    with pytest.raises(TesterError, match=r"core 4096 does not exist: this machine has cores? 0") as caught:
        at_veths(dut_cores=[0, 4096])
    assert (caught.value.code, caught.value.field) == ("cores", "engine.dut_cores")
    assert not probed
    assert at_veths(dut_cores=[4096], command=["ssh", "tester-host"]).dut_cores == (4096,)


@pytest.mark.parametrize("here", [True, False])
def test_what_the_configuration_says_is_watched_where_it_is_of_this_machine(here: bool) -> None:
    choice = configured([1, 2], ["clat", "plat"], here=here)
    assert choice.watched(ON) == (DutCores((1, 2), ("clat", "plat")) if here else None)
    assert (
        choice.stated(ON)["core_choice"]["why"]
        == "the configuration gives the DUT cores 1-2; the tester's loops have core 0"
    )


def at_veths(**engine: Any) -> CoreChoice:
    """The choice of a configuration."""
    sides = {
        side: {"port": port, "version": 4, "ipv4": f"198.1{8 + number}.0.2/24"}
        for number, (side, port) in enumerate(zip(("left", "right"), VETHS, strict=True))
    }
    setup = configuration.parse({"engine": engine, **sides}, "test")
    return cores_of_dut(setup, EngineCommand("dutperf-engine", setup.engine.command))


def test_the_time_of_the_dut_s_processes_on_configured_cores_is_not_that_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Their namespaces may be named; else they are looked for, as where the cores are."""
    say(monkeypatch, facts(None, process(9, "tayga", DUT, "1")))
    assert at_veths(dut_cores=[1]).watched(ON) == DutCores((1,), namespaces=(DUT,))
    assert at_veths(dut_cores=[1], dut_netns="plat").watched(ON) == DutCores((1,), ("plat",))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert at_veths(dut_cores=[1]).watched(ON) is None


def test_where_the_dut_s_processes_cannot_be_seen_nobody_watches_configured_cores(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    say(monkeypatch, {})
    choice = at_veths(dut_cores=[1])
    assert (choice.watched(ON), choice.dut_cores) == (None, (1,))
    assert "its processes could not be detected" in choice.why


# --- the probe ------------------------------------------------------------------------------------


def test_the_probe_says_what_can_be_read_of_it() -> None:
    """As it is run; what an ordinary user may not look at is left out."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", namespace_probe.__file__], capture_output=True, text=True, check=True
    )
    seen = json.loads(done.stdout)
    assert seen["tester"] == Path("/proc/self/ns/net").stat().st_ino
    assert seen["usable"] == sorted(os.sched_getaffinity(0))
    assert os.getpid() in [one["pid"] for one in seen["processes"]]
    core_choice.discover(seen, ["lo"])


def test_the_probe_reads_processes_of_a_made_up_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(namespace_probe, "PROC", tmp_path)
    directory = tmp_path / "9"
    for path, text in {
        "comm": "tayga\n",
        "task/9/status": "Name:\ttayga\nCpus_allowed_list:\t1\n",
        "task/10/status": "Cpus_allowed_list:\t0-1\n",
    }.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_text(text)
    for name in ("ns", "fd", "fdinfo"):
        (directory / name).mkdir()
    (directory / "ns/net").write_text("")
    (directory / "fd/3").symlink_to("/dev/net/tun")
    (directory / "fdinfo/3").write_text("pos:\t0\niff:\tsiit0\n")
    (directory / "fd/4").symlink_to("/dev/null")
    (tmp_path / "10").mkdir()  # it has just ended
    inode = (directory / "ns/net").stat().st_ino
    assert list(namespace_probe.processes()) == [
        {"pid": 9, "name": "tayga", "namespace": inode, "cores": ["0-1", "1"], "tuns": ["siit0"]}
    ]


def attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def test_the_probe_reads_a_link_of_rtnetlink() -> None:
    header = struct.pack("=BxHiII", 0, 1, 7, 0, 0)
    name, peer, number = (
        attribute(3, b"eth1\0"),
        attribute(5, struct.pack("=i", 4)),
        attribute(37, struct.pack("=i", 0)),
    )
    assert namespace_probe._link(header + name + peer + number) == {"name": "eth1", "index": 7, "peer": 4, "netnsid": 0}
    assert namespace_probe._link(header + name) == {"name": "eth1", "index": 7, "peer": 7, "netnsid": None}


@pytest.mark.parametrize(("cores", "is_row", "shared"), [([1], True, True), ([1, 2], True, False), ([1], False, False)])
def test_duts_in_a_row_share_the_one_core_that_they_have(cores: list[int], is_row: bool, shared: bool) -> None:
    watched = replace(configured(cores, ["clat", "plat"], here=True), is_row=is_row).watched(ON)
    assert watched is not None
    assert watched.share_one == shared


def test_a_switch_at_the_other_end_of_a_socket_is_the_dut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else its own work on the DUT's core would be that of others."""
    asked: list[str] = []
    monkeypatch.setattr(socket_peers, "pids", lambda ports: (asked.extend(ports), (7, 9))[1])
    environment = {"left": {"port": "virtio_user:/run/t/left"}, "right": {"port": "virtio_user:/run/t/right"}}
    assert configured([1], (), here=True).watched(environment) == DutCores((1,), pids=(7, 9))
    assert asked == ["virtio_user:/run/t/left", "virtio_user:/run/t/right"]
    assert configured([1], (), here=False).watched(environment) is None
