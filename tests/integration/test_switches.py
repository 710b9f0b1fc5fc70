# SPDX-License-Identifier: Apache-2.0
"""Address tables of real switches: what is read is what was set, or what the switch itself tells. The kernel's
bridge as a lab and as a person makes it (four_ports.sh), and Open vSwitch, which evicts what the bridge refuses.
Root only."""

from __future__ import annotations

import os
import re
import secrets
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from dutperf.lab import bridge_limit, linux_bridge
from dutperf.lab.errors import LabError
from dutperf.lab.netns import Namespace, run, standalone
from dutperf.traffic import switches
from printed import printed
from switches import has_open_vswitch
from undisturbed import until

from .test_commands import dutperf
from .test_paths import NAMES, made, mapping

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("lab_records")]

FAST = ("--learning-rate", "4k", "--test-rate", "4k", "--drain", "0.1")


def measured(right: Callable[[dict[str, Any]], bool], procedure: str, *arguments: object) -> dict[str, Any]:
    """The point of the first run that is ``right``; a busy machine disturbs some."""

    def measure() -> dict[str, Any]:
        done = dutperf(procedure, *map(str, arguments), "--json")
        assert done.returncode in (0, 1, 3), done.stderr
        found: dict[str, Any] = printed(done)["points"][0]
        return found

    return until(measure, right, fewest=2)


def test_a_bridge_leaves_frames_to_nobody_else() -> None:
    """br_netfilter has it join fragments, and hand frames to packet filters."""
    dut = Namespace(f"filter-{secrets.token_hex(3)}")
    dut.create()
    try:
        linux_bridge.leave_frames_alone(dut)
        shown = run(dut.command(["sh", "-c", "cat /proc/sys/net/bridge/bridge-nf-call-*tables 2> /dev/null || :"]))
    finally:
        dut.delete()
    assert set(shown.split()) <= {"0"}


def limits_bridges() -> bool:
    """Whether this kernel limits the addresses of a bridge."""
    name = f"limit-{secrets.token_hex(3)}"
    run(["ip", "netns", "add", name])
    try:
        run(["ip", "-n", name, "link", "add", "br0", "type", "bridge"])
        run(["ip", "netns", "exec", name, *standalone(bridge_limit, "br0", "5")])
    except LabError:
        return False
    finally:
        run(["ip", "netns", "delete", name])
    return True


def set_up(name: str, folder: Path, **commands: str) -> Path:
    """The configuration of the tester beside a switch that was made by hand."""
    file = folder / "switch.yaml"
    dut = {"name": "by hand", **({"commands": commands} if commands else {})}
    file.write_text(yaml.safe_dump(mapping("bridge", name, "mesh") | {"dut": dut}))
    return file


@pytest.mark.long
@pytest.mark.parametrize(("ports", "size"), [(3, 64), (5, 1003)])
def test_the_table_of_the_lab_s_bridge_is_read_exactly(ports: int, size: int) -> None:
    if not limits_bridges():
        pytest.skip("this kernel does not limit the addresses of a bridge")
    options = [f"--lab-option={name}={value}" for name, value in (("ports", ports), ("addresses", size))]
    searched = ("--first-addresses", 40, *FAST)
    found = measured(
        lambda point: point["table_entries"] == size, "address-capacity", "--lab", "linux-bridge", *options, *searched
    )
    assert found["addresses"]["median"] == size - ports
    assert found["limited_by"] == "dut"


@pytest.mark.long
def test_a_bridge_made_by_hand_that_only_forgets_by_ageing_is_read_exactly(tmp_path: Path) -> None:
    """No command empties its table: each trial waits."""
    if not limits_bridges():
        pytest.skip("this kernel does not limit the addresses of a bridge")
    with made("bridge") as name:
        run(["ip", "netns", "exec", f"{name}-dut", *standalone(bridge_limit, "switch", "100")])
        aged = ["ip", "-n", f"{name}-dut", "link", "set", "dev", "switch", "type", "bridge", "ageing_time", "200"]
        run(aged)
        searched = ("--first-addresses", 95, "--most-addresses", 98, "--ageing", 2, *FAST)
        found = measured(
            lambda point: point["table_entries"] == 100,
            *("address-capacity", "--config", set_up(name, tmp_path), *searched),
        )
        assert found["addresses"]["median"] == 100 - len(NAMES)


@contextmanager
def forgotten(name: str, folder: Path) -> Iterator[Callable[[], float | None]]:
    """How long the kernel of a bridge made by hand kept the first address of the tests, in s, by its own events."""
    file = folder / "events.txt"
    argv = ["ip", "netns", "exec", f"{name}-dut", "stdbuf", "--output=L", "bridge", "-timestamp", "monitor", "fdb"]
    with file.open("w") as output, subprocess.Popen(argv, stdout=output) as monitor:

        def kept() -> float | None:
            times: dict[bool, float] = {}
            now = 0.0
            for line in file.read_text().splitlines():
                if line.startswith("Timestamp:"):
                    text, _, micros = line.removeprefix("Timestamp: ").removesuffix(" usec").rpartition(" ")
                    now = datetime.strptime(text, "%a %b %d %H:%M:%S %Y").timestamp() + int(micros) / 1e6  # noqa: DTZ007
                elif switches.FIRST_ADDRESS in line:
                    times[line.startswith("Deleted")] = now
            return times[True] - times[False] if len(times) == 2 else None

        try:
            yield kept
        finally:
            monitor.terminate()


@pytest.mark.long
def test_the_ageing_time_is_that_after_which_the_kernel_forgets(tmp_path: Path) -> None:
    """Its timers are coarse: it forgets up to some tenths of a second later than set."""
    with made("bridge") as name:
        run(["ip", "-n", f"{name}-dut", "link", "set", "dev", "switch", "type", "bridge", "ageing_time", "200"])
        file = set_up(name, tmp_path)

        def compared() -> tuple[float | None, float | None]:
            with forgotten(name, tmp_path) as kept:
                done = dutperf(
                    *("address-ageing", "--config", str(file), "--duration", "4", "--drain", "0.1", "--json")
                )
                assert done.returncode in (0, 1, 3), done.stderr
                return printed(done)["points"][0]["ageing_s"]["median"], kept()

        def agree(both: tuple[float | None, float | None]) -> bool:
            return None not in both and abs((both[0] or 0) - (both[1] or 0)) < 0.02

        read, truth = until(compared, agree, fewest=3)
        assert truth is not None
        assert read is not None
        assert 1.95 <= truth < 3


def test_a_bridge_learns_as_fast_as_addresses_come() -> None:
    """In the same system call in which it forwards: far beyond the rates of this test."""
    found = measured(
        lambda point: point["learning_aps"]["median"] == 8000,
        *("address-learning-rate", "--lab", "linux-bridge", "--lab-option", "ports=3", "--addresses", "800"),
        *("--max-rate", "8k", "--test-rate", "4k", "--repetitions", "1", "--drain", "0.1"),
    )
    assert found["limited_by"] == "range"


@pytest.mark.long
def test_a_hub_has_no_table(tmp_path: Path) -> None:
    """It floods every frame: nothing passes."""
    with made("hub") as name:
        found = measured(
            lambda point: point["limited_by"] == "range",
            *("address-capacity", "--config", set_up(name, tmp_path, clear_addresses="true")),
            *("--first-addresses", 8, "--most-addresses", 10, *FAST),
        )
    assert found["addresses"]["median"] is None
    assert "nothing passed: with 1 addresses 1 of 1 test frames flooded" in found["message"]


@pytest.mark.long
@pytest.mark.skipif(not has_open_vswitch(), reason="needs Debian's openvswitch-switch-dpdk")
def test_a_table_that_evicts_is_read_exactly(tmp_path: Path) -> None:
    """Open vSwitch in user space, typed by hand: it forgets the oldest address for a new one. Frames that match a
    flow of its cache teach it nothing for half a second: what empties the table empties the cache too."""
    with made("cables") as name, open_vswitch(f"{name}-dut", tmp_path) as folder:
        control = f"ovs-appctl -t {folder}/ovs-vswitchd.*.ctl"
        clear = f"{control} fdb/flush switch && {control} revalidator/purge"
        found = measured(
            lambda point: point["table_entries"] == 60,
            *("address-capacity", "--config", set_up(name, tmp_path, clear_addresses=clear)),
            *("--first-addresses", 40, *("--learning-rate", "1k", "--test-rate", "1k", "--drain", "0.3")),
        )
    assert found["addresses"]["median"] == 60 - len(NAMES)


@contextmanager
def open_vswitch(namespace: str, folder: Path) -> Iterator[Path]:
    """A bridge of the ports da to dd whose table has 60 entries; yields the folder of its sockets."""
    names = ("OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR")
    environment = os.environ | dict.fromkeys(names, str(folder))
    database = f"unix:{folder}/db.sock"

    def tell(*argv: str) -> None:
        subprocess.run(
            ["ip", "netns", "exec", namespace, *argv], check=True, env=environment, capture_output=True, timeout=60
        )

    tell("ovsdb-tool", "create", f"{folder}/conf.db", "/usr/share/openvswitch/vswitch.ovsschema")
    try:
        tell("ovsdb-server", f"{folder}/conf.db", f"--remote=p{database}", "--pidfile", "--detach", "--log-file")
        tell("ovs-vswitchd", database, "--pidfile", "--detach", "--log-file")
        bridge = ["add-br", "switch", "--", "set", "bridge", "switch", "datapath_type=netdev"]
        bridge += ["other-config:mac-table-size=60", "other-config:mac-aging-time=60"]
        ports = [word for port in NAMES for word in ("--", "add-port", "switch", f"d{port}")]
        tell("ovs-vsctl", f"--db={database}", *bridge, *ports)
        yield folder
    finally:
        for file in folder.glob("*.pid"):
            subprocess.run(["kill", file.read_text().strip()], check=False)


@pytest.mark.long
def test_broadcasts_reach_every_port_of_a_bridge_made_by_hand(tmp_path: Path) -> None:
    """And of one that drops every tenth copy at a port that only counts, none passes."""
    with made("bridge") as name:
        options = ("--config", set_up(name, tmp_path), "--max-rate", "1k", "--min-rate", "500")
        options += ("--resolution", "500", "--duration", "0.5", "--drain", "0.2", "--repetitions", "3")
        found = measured(lambda point: point["broadcast_fps"]["median"] == 1000, "broadcast", *options)
        assert list(found["delay_us"]) == ["b", "c", "d"]
        assert all(delays["min"]["median"] > 0 for delays in found["delay_us"].values())
        hook = "type filter hook egress device dd priority 0"
        rules = f"table netdev loss {{ chain out {{ {hook};\nnumgen inc mod 10 0 drop\n}}\n}}"
        run(["ip", "netns", "exec", f"{name}-dut", "nft", "-f", "-"], rules)
        options = (*options, "--repetitions", "1")
        found = measured(lambda point: point["broadcast_fps"]["median"] is None, "broadcast", *options)
    assert re.search(r"d lacks (9|10|11)\.", found["message"]), (
        "a tenth, by chance more of the frames to d itself or fewer"
    )
