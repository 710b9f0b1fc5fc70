# SPDX-License-Identifier: Apache-2.0
"""The doctor on made-up machines: files below a root of the test's own."""

from __future__ import annotations

import gzip
import json
import resource
import shutil
import struct
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from dutperf import installation
from dutperf.cli.commands.doctor import this_machine
from dutperf.engine.client import engine_version
from dutperf.machine import doctor, programs
from dutperf.machine.access import Done, MachineError
from dutperf.machine.doctor import Finding, Machine, examine, repairs
from dutperf.tester import TesterError

ARM64 = "processor\t: {}\nBogoMIPS\t: 50.00\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n\n"
CPU = "processor\t: {}\nmodel name\t: Example 9000\nflags\t\t: fpu tsc constant_tsc nonstop_tsc rdtscp\n\n"
ALL_CAPABILITIES = "Name:\tx\nCapEff:\t000001ffffffffff\n"
GOOD = {
    "proc/cpuinfo": "".join(CPU.format(core) for core in range(8)),
    "proc/stat": "cpu  1000 0 1000 98000 0 0 0 0 0 0\ncpu0 1 2 3\n",
    "proc/mounts": "/dev/vda / ext4 rw 0 0\nsysfs /sys sysfs rw 0 0\nhugetlbfs /dev/hugepages hugetlbfs rw 0 0\n",
    "proc/self/status": ALL_CAPABILITIES,
    "proc/meminfo": "MemTotal: 16000000 kB\nMemAvailable:    8000000 kB\n",
    "proc/filesystems": "nodev\tsysfs\nnodev\thugetlbfs\n",
    "boot/config-6.1.0": "CONFIG_VETH=m\nCONFIG_TUN=m\nCONFIG_XDP_SOCKETS=y\nCONFIG_NF_TABLES_NETDEV=y\n",
    "sys/devices/system/cpu/isolated": "2-7\n",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n",
    "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": "performance\n",
    "sys/devices/system/node/node0/cpulist": "0-7\n",
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
    "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": "512\n",
    "sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages": "500\n",
    "sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages": "0\n",
    "sys/kernel/mm/hugepages/hugepages-1048576kB/free_hugepages": "0\n",
    "sys/bus/pci/devices/0000:01:00.0/class": "0x020000\n",
    "sys/bus/pci/devices/0000:02:00.0/class": "0x010802\n",
    "sys/bus/pci/drivers/vfio-pci/new_id": "",
    "sys/class/iommu/dmar0/type": "",
    **{
        f"usr/lib/x86_64-linux-gnu/dpdk/pmds-23.0/librte_net_{name}.so.23": ""
        for name in ("af_packet", "af_xdp", "ring", "null", "ixgbe")
    },
}

MakeMachine = Callable[..., Machine]


def interfaces(argv: Sequence[str], *shown: dict[str, object]) -> Done:
    """What ``ip -json`` says: no default route, and the interfaces that are shown."""
    return Done(0, json.dumps([] if "route" in argv else shown))


@pytest.fixture
def machine(tmp_path: Path) -> MakeMachine:
    """Makes the good machine with some files changed (or, by None, missing) and other members."""

    def make(changes: dict[str, str | None] | None = None, **members: object) -> Machine:
        for name, text in {**GOOD, **(changes or {})}.items():
            if text is not None:
                file = tmp_path / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
        given = {
            "root": tmp_path,
            "run": interfaces,
            "user": 0,
            "release": "6.1.0",
            "memlock_bytes": resource.RLIM_INFINITY,
            "pause": lambda: None,
        }
        found = {
            "find_program": lambda program: f"/usr/sbin/{program}",
            "find_engine": lambda: "/opt/dutperf-engine",
            "engine_version": lambda _program: "0.2.0 (DPDK 22.11.11, instructions: x86-64-v4)",
        }
        return replace(this_machine(), **{**given, **found, **members})  # type: ignore[arg-type]

    return make


def finding(machine: Machine, topic: str) -> Finding:
    """The one finding on a topic."""
    (found,) = [finding for finding in examine(machine) if finding.topic == topic]
    return found


def test_on_a_good_machine_nothing_is_missing(machine: MakeMachine) -> None:
    findings = examine(machine())
    assert [one for one in findings if one.state != "ok"] == []
    assert len({one.topic for one in findings}) == len(findings)


def test_a_machine_that_tells_nothing_is_examined_all_the_same(tmp_path: Path) -> None:
    def no_engine() -> str:
        raise TesterError("dutperf-engine is not built", code="no_engine")

    gone = {"find_program": lambda _program: None, "find_engine": no_engine}
    bare = replace(
        this_machine(),
        root=tmp_path,
        run=lambda _argv: Done(127),
        release="0",
        memlock_bytes=65536,
        pause=lambda: None,
        **gone,
    )
    findings = examine(bare)
    assert {"engine", "tayga", "nft", "ip", "DPDK", "privileges", "huge pages", "TSC"} <= {
        one.topic for one in findings if one.state == "missing"
    }


def test_the_engine_says_its_versions(machine: MakeMachine) -> None:
    assert finding(machine(), "engine").text == "/opt/dutperf-engine: 0.2.0 (DPDK 22.11.11, instructions: x86-64-v4)"


@pytest.mark.parametrize(
    ("program", "said"),
    [("/bin/true", "/bin/true is no dutperf-engine: as its version it says"), ("/nowhere", "/nowhere")],
)
def test_another_program_is_no_engine(
    program: str, said: str, machine: MakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DUTPERF_ENGINE", program)
    real = this_machine()
    found = finding(machine(find_engine=real.find_engine, engine_version=real.engine_version), "engine")
    assert found.state == "missing"
    assert found.text.startswith(f"DUTPERF_ENGINE: {said}")


def test_an_engine_that_does_not_start_is_missing(tmp_path: Path, machine: MakeMachine) -> None:
    broken = tmp_path / "dutperf-engine"
    broken.write_text("#!/bin/sh\necho 'librte_eal.so.23: cannot open shared object file' >&2; exit 127\n")
    broken.chmod(0o755)
    found = finding(machine(find_engine=lambda: str(broken), engine_version=engine_version), "engine")
    assert (found.state, found.text) == (
        "missing",
        f"{broken} does not start: librte_eal.so.23: cannot open shared object file",
    )


@pytest.mark.parametrize(("built_in", "state"), [(" built in", "ok"), ("", "missing")])
def test_an_engine_with_drivers_inside_needs_none_of_the_system(
    built_in: str, state: str, tmp_path: Path, machine: MakeMachine
) -> None:
    without = machine(engine_version=lambda _program: f"0.2.0 (DPDK 22.11.11{built_in}, instructions: x86-64-v2)")
    shutil.rmtree(tmp_path / "usr/lib/x86_64-linux-gnu/dpdk")
    assert finding(without, "DPDK").state == state


def test_every_lack_has_one_line_of_advice_and_nothing_else_has(tmp_path: Path, machine: MakeMachine) -> None:
    for one in [*examine(machine()), *examine(replace(this_machine(), root=tmp_path / "nothing", pause=lambda: None))]:
        assert (one.advice is not None) == (one.state == "missing"), one
        assert "\n" not in one.text + (one.advice or "")


def test_the_command_that_builds_the_engine_is_told_once(
    machine: MakeMachine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(programs, "__file__", str(tmp_path / "src/dutperf/machine/programs.py"))
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("DUTPERF_ENGINE", raising=False)
    found = finding(machine(find_engine=this_machine().find_engine), "engine")
    assert (found.state, found.text, found.advice) == ("missing", "there is no dutperf-engine", installation.engine())


def test_advice_says_how_it_is_carried_out(machine: MakeMachine) -> None:
    lacking = machine({"sys/devices/system/cpu/isolated": "", FREE_2MB: "0\n"})
    assert (finding(lacking, "isolated cores").advice or "").endswith(
        "to the kernel's command line (Debian: GRUB_CMDLINE_LINUX in /etc/default/grub, then update-grub) and reboot"
    )
    for command in ("sysctl -w vm.nr_hugepages=512", "echo vm.nr_hugepages=512 > /etc/sysctl.d/dutperf.conf"):
        assert command in (finding(lacking, "huge pages").advice or "")


GOVERNOR = "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor"
CLOCK = "sys/devices/system/clocksource/clocksource0/current_clocksource"
FREE_2MB = "sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages"
FREE_1GB = "sys/kernel/mm/hugepages/hugepages-1048576kB/free_hugepages"
AF_XDP = "usr/lib/x86_64-linux-gnu/dpdk/pmds-23.0/librte_net_af_xdp.so.23"


@pytest.mark.parametrize(
    ("topic", "changes", "state", "words"),
    [
        ("cores", {"proc/cpuinfo": CPU.format(0)}, "missing", "one core"),
        ("cores", {"proc/cpuinfo": CPU.format(0) + CPU.format(1)}, "note", "2 cores; sending and receiving share"),
        ("cores", {}, "ok", "Example 9000, 8 cores"),
        ("isolated cores", {"sys/devices/system/cpu/isolated": "\n"}, "missing", "none"),
        (
            "isolated cores",
            {"sys/devices/system/cpu/isolated": "\n", "proc/cpuinfo": CPU.format(0) + CPU.format(1)},
            "note",
            "none to spare",
        ),
        ("NUMA", {"sys/devices/system/node/node1/cpulist": "8-15\n"}, "note", "node1: cores 8-15"),
        ("governor", {GOVERNOR: "powersave\n"}, "missing", "performance, powersave"),
        ("governor", {GOVERNOR: ""}, "ok", "performance"),  # as of a core that is offline, whose file cannot be read
        ("virtual machine", {"proc/cpuinfo": ARM64.format(0)}, "note", "this kind of processor does not tell"),
        ("virtual machine", {"sys/hypervisor/type": "xen\n"}, "note", "interrupt"),
        ("TSC", {"proc/cpuinfo": CPU.format(0).replace("nonstop_tsc ", "")}, "missing", "does not report nonstop_tsc"),
        ("TSC", {CLOCK: "hpet\n"}, "missing", "hpet"),
        ("TSC", {CLOCK: "kvm-clock\n"}, "ok", "kvm-clock"),
        ("TSC", {"proc/cpuinfo": ARM64.format(0), CLOCK: "arch_sys_counter\n"}, "ok", "generic timer"),
        ("cores", {"proc/cpuinfo": ARM64.format(0) + ARM64.format(1)}, "note", "implementer 0x41, part 0xd0c, 2 cores"),
        ("virtual machine", {"proc/cpuinfo": CPU.format(0).replace("fpu", "fpu hypervisor")}, "note", "interrupt"),
        ("huge pages", {FREE_2MB: "0\n"}, "missing", "2 MB: 512 reserved, 0 free"),
        ("huge pages", {FREE_2MB: "0\n", FREE_1GB: "2\n"}, "ok", "1 GB: 0 reserved, 2 free"),
        ("namespaces", {"proc/mounts": "proc /proc proc rw 0 0\n"}, "missing", "as in a chroot"),
        ("hugetlbfs", {"proc/mounts": "proc /proc proc rw 0 0\n"}, "note", "not mounted"),
        (
            "privileges",
            {"proc/self/status": "CapEff:\t0000000000003000\n"},
            "missing",
            "without CAP_IPC_LOCK, CAP_SYS_ADMIN",
        ),
        (
            "kernel",
            {"boot/config-6.1.0": "CONFIG_TUN=y\nCONFIG_NF_TABLES_NETDEV=m\n# CONFIG_VETH is not set\n"},
            "missing",
            "without veth pairs",
        ),
        ("kernel", {"boot/config-6.1.0": None}, "note", "configuration is not readable"),
        ("DPDK", {AF_XDP: None}, "missing", "without the drivers af_xdp"),
        ("network cards", {"sys/bus/pci/drivers/vfio-pci/new_id": None}, "missing", "0000:01:00.0, but no driver"),
        ("network cards", {"sys/bus/pci/devices/0000:01:00.0/class": "0x030000\n"}, "note", "none free"),
        ("network cards", {"sys/bus/pci/devices/0000:01:00.0/net/of-another-namespace/name": ""}, "note", "none free"),
        ("network cards", {}, "ok", "0000:01:00.0; vfio-pci"),
        ("IOMMU", {}, "ok", "in use"),
        ("IOMMU", {"sys/class/iommu/dmar0/type": None}, "missing", "unless it is bound with --no-iommu"),
        (
            "IOMMU",
            {"sys/class/iommu/dmar0/type": None, "sys/bus/pci/devices/0000:01:00.0/class": "0x030000\n"},
            "note",
            "only PCI ports need one",
        ),
        ("huge pages", {FREE_2MB: "127\n"}, "missing", "2 MB: 512 reserved, 127 free"),
        ("steal time", {"proc/stat": "cpu  1000 0 1000 88000 0 0 0 10000 0 0\n"}, "missing", "10.00 % since start"),
        ("load", {"proc/loadavg": "0.08 1.20 1.35 1/200 999\n"}, "ok", "0.08 in the last minute"),
        ("load", {"proc/loadavg": "17.3 1.20 1.35 1/200 999\n"}, "note", "if that goes on, trials will be repeated"),
        ("steal time", {"proc/stat": "intr 5\n"}, "note", "the kernel does not show it"),
    ],
)
def test_findings(topic: str, changes: dict[str, str | None], state: str, words: str, machine: MakeMachine) -> None:
    found = finding(machine(changes), topic)
    assert (found.state, words in found.text) == (state, True), found


@pytest.mark.parametrize("flags", [[], ["UP"]])
def test_a_card_that_the_kernel_uses_is_not_free(flags: list[str], tmp_path: Path, machine: MakeMachine) -> None:
    eth0 = {
        "ifname": "eth0",
        "link_type": "ether",
        "flags": flags,
        "addr_info": [{"family": "inet", "local": "192.0.2.1", "prefixlen": 24, "scope": "global"}],
    }
    used = machine(run=lambda argv: interfaces(argv, eth0))
    (tmp_path / "sys/class/net/eth0").mkdir(parents=True)
    (tmp_path / "sys/class/net/eth0/device").symlink_to(tmp_path / "sys/bus/pci/devices/0000:01:00.0")
    assert finding(used, "network cards").state == ("note" if flags else "ok")


def test_without_ip_no_card_counts_as_free(machine: MakeMachine) -> None:
    assert finding(machine(run=lambda _argv: Done(127)), "network cards").state == "note"


CARD = """Capabilities:
\thardware-transmit
\thardware-receive
PTP Hardware Clock: 0
Hardware Receive Filter Modes:
\tall
"""


@pytest.mark.parametrize(
    ("stamped", "changes", "state", "words"),
    [
        ({"eth1": CARD}, {"dev/ptp0": ""}, "ok", "eth1 card (/dev/ptp0)"),
        ({"eth1": CARD}, {}, "note", "eth1 card (/dev/ptp0, which is not there: "),
        (
            {"eth1": CARD},
            {"dev/ptp0": "", "proc/self/status": "CapEff:\t0000000000000000\n"},
            "note",
            "; those of a card need CAP_NET_ADMIN",
        ),
        ({"eth1": ""}, {}, "ok", "eth1 -"),
        ({}, {}, "note", "eth1 unknown"),
    ],
    ids=["card", "no clock", "no privilege", "nobody", "no ethtool"],
)
def test_what_can_stamp_frames_is_named(
    stamped: dict[str, str], changes: dict[str, str | None], state: str, words: str, machine: MakeMachine
) -> None:
    def run(argv: Sequence[str]) -> Done:
        if argv[0] == "ethtool":
            return Done(0, stamped[argv[2]]) if argv[2] in stamped else Done(127)
        return interfaces(argv, {"ifname": "eth1", "link_type": "ether"})

    found = finding(machine(changes, run=run), "time stamps")
    assert (found.state, words in found.text) == (state, True), found


# --- repairs --------------------------------------------------------------------------------------

PAGES = "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
VFIO = "sys/bus/pci/drivers/vfio-pci/new_id"


def commands(machine: Machine) -> list[str]:
    """What the repairs do."""
    return [str(action) for step in repairs(machine) for action in step.actions]


def test_a_good_machine_needs_no_repair(machine: MakeMachine) -> None:
    assert repairs(machine()) == []


@pytest.mark.parametrize(
    ("changes", "done", "undo"),
    [
        ({FREE_2MB: "0\n"}, [f"echo 1024 > /{PAGES}"], f"echo 512 > /{PAGES}"),
        (
            {FREE_2MB: "0\n", "proc/meminfo": "MemAvailable: 1024000 kB\n"},
            [f"echo 762 > /{PAGES}"],
            f"echo 512 > /{PAGES}",
        ),
        ({FREE_2MB: "0\n", "proc/meminfo": "MemAvailable: 500000 kB\n"}, [], None),
        ({FREE_2MB: "0\n", FREE_1GB: "1\n"}, [], None),
        (
            {"proc/mounts": "proc /proc proc rw 0 0\n"},
            ["mkdir -p /dev/hugepages", "mount -t hugetlbfs hugetlbfs /dev/hugepages"],
            "umount /dev/hugepages",
        ),
        ({"proc/mounts": "proc /proc proc rw 0 0\n", "proc/filesystems": "nodev\tsysfs\n"}, [], None),
        ({VFIO: None}, ["modprobe vfio-pci"], "modprobe --remove vfio-pci"),
        ({VFIO: None, "sys/bus/pci/devices/0000:01:00.0/class": "0x030000\n"}, [], None),
    ],
)
def test_repairs_and_how_they_are_undone(
    changes: dict[str, str | None], done: list[str], undo: str | None, machine: MakeMachine
) -> None:
    made_up = machine(changes)
    assert commands(made_up) == done
    assert [step.undo for step in repairs(made_up)] == ([] if undo is None else [undo])


def test_each_repair_is_said_beside_what_is_missing(machine: MakeMachine) -> None:
    made_up = machine({FREE_2MB: "0\n", "proc/mounts": "proc /proc proc rw 0 0\n", VFIO: None})
    said = {one.topic: one.repair for one in examine(made_up) if one.repair}
    assert list(said.values()) == [step.what for step in repairs(made_up)]
    assert list(said) == ["huge pages", "hugetlbfs", "network cards"]


def test_too_little_memory_is_said(machine: MakeMachine) -> None:
    found = finding(machine({FREE_2MB: "0\n", "proc/meminfo": "MemAvailable: 400000 kB\n"}), "huge pages")
    assert (found.advice, found.repair) == ("390 MB of memory are free, too little to reserve 256 MB of it", None)


def test_huge_pages_are_reserved_on_the_nodes_of_the_cards(machine: MakeMachine) -> None:
    nodes = {f"sys/devices/system/node/node{node}/cpulist": "0-3\n" for node in (0, 1, 2)}
    cards = {
        f"sys/bus/pci/devices/0000:0{node + 3}:00.0/{name}": text
        for node in (1, 2)
        for name, text in (("class", "0x020000"), ("numa_node", str(node)))
    }
    places = [f"sys/devices/system/node/node{node}/hugepages/hugepages-2048kB/nr_hugepages" for node in (1, 2)]
    several = machine({FREE_2MB: "0\n", **nodes, **cards, **dict.fromkeys(places, "8\n")})
    assert commands(several) == [f"echo 264 > /{place}" for place in places]
    assert [step.what for step in repairs(several)][1] == "256 huge pages of 2 MB are reserved on node2 (512 MB)"


@pytest.mark.parametrize(("reserved", "fault"), [(1024, False), (640, False), (600, True)])
def test_a_kernel_that_reserves_fewer_pages_than_asked_for(
    reserved: int, fault: bool, machine: MakeMachine, tmp_path: Path
) -> None:
    """Enough for the engine is enough."""
    made_up = machine({FREE_2MB: "0\n"})
    (step,) = repairs(made_up)
    (tmp_path / PAGES).write_text(str(reserved))
    said = step.fault(made_up)
    assert (said is not None) == fault
    assert (
        said is None
        or f"only {reserved} of 1024 huge pages could be reserved, memory is fragmented:"
        " add hugepages=1024 to the kernel's command line"
        in said
    )
    if fault:
        with pytest.raises(MachineError, match="memory is fragmented"):
            replace(step, actions=()).do(made_up)
        assert (tmp_path / PAGES).read_text() == "512"


def test_steal_time_is_that_of_the_sample(tmp_path: Path, machine: MakeMachine) -> None:
    def a_while_later() -> None:
        (tmp_path / "proc/stat").write_text("cpu  1010 0 1000 98080 0 0 0 10 0 0\n")

    found = finding(machine(pause=a_while_later), "steal time")
    assert found.state == "missing"
    assert found.text == "10.00 % just now, 0.01 % since start"


def test_the_kernels_own_copy_of_its_configuration_comes_first(tmp_path: Path, machine: MakeMachine) -> None:
    made_up = machine()
    (tmp_path / "proc/config.gz").write_bytes(gzip.compress(b"CONFIG_VETH=y\n"))
    assert finding(made_up, "kernel").state == "missing"


@pytest.mark.parametrize(("status", "state"), [(ALL_CAPABILITIES, "ok"), ("CapEff:\t0000000000000000\n", "missing")])
def test_locked_memory_is_limited_only_without_the_capability(status: str, state: str, machine: MakeMachine) -> None:
    found = finding(machine({"proc/self/status": status}, memlock_bytes=65536), "locked memory")
    assert found.state == state
    assert ("64 KiB" in found.text) == (state == "missing")


@pytest.mark.parametrize("missing", ["tayga", "nft", "ip", "ethtool"])
def test_a_missing_program_is_named_with_its_package(missing: str, machine: MakeMachine) -> None:
    made_up = machine(find_program=lambda program: None if program == missing else f"/usr/sbin/{program}")
    advice = {one.topic: one.advice for one in examine(made_up) if one.state == "missing"}
    assert list(advice) == [missing]
    assert (advice[missing] or "").startswith("apt-get install ")


def test_this_machine_can_be_examined() -> None:
    topics = [one.topic for one in examine(replace(this_machine(), pause=lambda: None))]
    assert topics.count("cores") == 1
    assert len(topics) >= len(doctor._CHECKS)


def test_of_a_cpuset_only_its_cores_count(machine: MakeMachine) -> None:
    one = machine({"proc/self/status": f"{ALL_CAPABILITIES}Cpus_allowed_list:\t3\n"})
    assert finding(one, "cores").state == "missing"
    assert "one core; of 8 this process may use 3 (cpuset)" in finding(one, "cores").text
    some = machine({"proc/self/status": f"{ALL_CAPABILITIES}Cpus_allowed_list:\t1-2,5,7\n"})
    assert "4 cores; of 8 this process may use 1-2,5,7 (cpuset)" in finding(some, "cores").text


QUOTAS: list[tuple[str, dict[str, str], str | None]] = [
    (
        "version 2",
        {"proc/self/cgroup": "0::/user.slice/x.scope\n", "sys/fs/cgroup/user.slice/cpu.max": "150000 100000"},
        "1.5",
    ),
    ("version 2, in a container", {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "50000 100000"}, "0.5"),
    ("no limit", {"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/cpu.max": "max 100000"}, None),
    (
        "version 1",
        {
            "proc/self/cgroup": "4:memory:/a\n3:cpu,cpuacct:/a/b\n0::/\n",
            "sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us": "200000",
            "sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us": "100000",
            "sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_quota_us": "-1",
            "sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_period_us": "100000",
        },
        "2",
    ),
    ("another group", {"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/b/cpu.max": "1 100000"}, None),
]


@pytest.mark.parametrize(("files", "limit"), [row[1:] for row in QUOTAS], ids=[row[0] for row in QUOTAS])
def test_a_cpu_quota(files: dict[str, str], limit: str | None, machine: MakeMachine) -> None:
    found = finding(machine(files), "CPU quota")
    assert (found.state, found.text.partition(" ")[0]) == (("ok", "none") if limit is None else ("missing", limit))


def capabilities_of(names: Sequence[str], *, effective: bool = True) -> bytes:
    """As the kernel keeps them with a file (capability.h, revision 2)."""
    bits = sum(1 << doctor.CAPABILITIES[name] for name in names)
    return struct.pack("<5I", 0x0200_0000 | effective, bits & 0xFFFF_FFFF, 0, bits >> 32, 0)


def test_the_engine_may_have_capabilities_of_its_file(machine: MakeMachine) -> None:
    """They count, and not those of this process; root has its own."""
    user = {"proc/self/status": "CapEff:\t0000000000000000\nCapBnd:\t000001ffffffffff\nCapAmb:\t0000000000000000\n"}
    asked: list[str] = []

    def of(attribute: bytes) -> Callable[[str], bytes]:
        return lambda program: asked.append(program) or attribute  # type: ignore[func-returns-value]

    whole = capabilities_of(list(doctor.CAPABILITIES))
    found = finding(machine(user, user=1000, file_capabilities=of(whole)), "privileges")
    assert (found.state, asked) == ("note", ["/opt/dutperf-engine"])
    assert "labs need root" in found.text
    few = finding(machine(user, user=1000, file_capabilities=of(capabilities_of(["CAP_NET_RAW"]))), "privileges")
    assert few.text == "the engine is without CAP_NET_ADMIN, CAP_IPC_LOCK, CAP_SYS_ADMIN"
    idle = capabilities_of(list(doctor.CAPABILITIES), effective=False)
    assert finding(machine(user, user=1000, file_capabilities=of(idle)), "privileges").state == "missing"
    bounded = {"proc/self/status": "CapEff:\t0\nCapBnd:\t0000000000003000\n"}
    held = finding(machine(bounded, user=1000, file_capabilities=of(whole)), "privileges")
    assert held.text == "the engine is without CAP_IPC_LOCK, CAP_SYS_ADMIN"

    def none(_program: str) -> bytes:
        raise OSError("no such attribute")

    assert finding(machine(user, user=1000, file_capabilities=none), "privileges").state == "missing"
    assert (
        finding(machine(user, user=1000, file_capabilities=of(whole), memlock_bytes=65536), "locked memory").state
        == "ok"
    )
