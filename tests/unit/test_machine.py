# SPDX-License-Identifier: Apache-2.0
"""Network cards, interfaces and who uses them, on made-up machines; and giving cards away and back."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path, PosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dutperf.machine import binding, pci
from dutperf.machine.access import SYSTEM_PATHS, Done, Machine, MachineError, run
from dutperf.machine.binding import NO_IOMMU_MODE, Consent
from dutperf.machine.interfaces import in_another_namespace
from dutperf.machine.open_files import openers
from dutperf.machine.ports import Port, inventory, ports
from dutperf.machine.steps import Write
from machines import DEVICES, FakeKernel, but, made_up

A, B, C = "0000:01:00.0", "0000:01:00.1", "0000:02:00.0"


@pytest.fixture
def kernel(tmp_path: Path) -> FakeKernel:
    """eth0 on card C carries the default route; cards A (eth1) and B (eth2) are free, each in an
    IOMMU group of its own; vfio-pci is there."""
    made = made_up(tmp_path, routes=[{"dst": "default", "dev": "eth0"}])
    made.driver("vfio-pci")
    for address, name, group in ((A, "eth1", "11"), (B, "eth2", "12"), (C, "eth0", "13")):
        made.card(address, group=group)
        made.interface(name, address, addresses=["192.0.2.2/24"] if name == "eth0" else [])
    return made


def bound(kernel: FakeKernel, *names: str, **consent: bool) -> tuple[str, ...]:
    """Give the cards away; the remarks."""
    planned = binding.bind(inventory(kernel), names, Consent(**consent))
    for step in planned.steps:
        step.do(kernel)
    return planned.remarks


def returned(kernel: FakeKernel, *names: str) -> tuple[str, ...]:
    """Give the cards back; the remarks."""
    planned = binding.unbind(inventory(kernel), names)
    for step in planned.steps:
        step.do(kernel)
    return planned.remarks


def driver(kernel: FakeKernel, address: str) -> str | None:
    """Who has the card."""
    return kernel.target(f"{DEVICES}/{address}/driver")


def refusal(kernel: FakeKernel, *names: str, **consent: bool) -> str:
    """Why the cards are not given away; nothing has been changed then."""
    with pytest.raises(MachineError) as caught:
        bound(kernel, *names, **consent)
    assert (kernel.written, kernel.started) == ([], [])
    assert "\n" not in str(caught.value)
    return str(caught.value)


# --- addresses ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("0000:01:00.0", "0000:01:00.0"),
        ("01:00.0", "0000:01:00.0"),
        ("0000:AF:1F.7", "0000:af:1f.7"),
        ("1:0.0", "0000:01:00.0"),
        ("10000:E1:00.0", "10000:e1:00.0"),
        (" 0000:01:00.0\n", "0000:01:00.0"),
        ("0000:01:00.8", None),
        ("0000:01:00", None),
        ("02:00:00:00:00:01", None),
        ("eth0", None),
        ("", None),
    ],
)
def test_addresses(text: str, address: str | None) -> None:
    assert pci.address_of(text) == address


@given(st.integers(0, 0xFFFF), st.integers(0, 255), st.integers(0, 31), st.integers(0, 7))
def test_an_address_of_the_kernel_s_is_read_as_itself(domain: int, bus: int, device: int, function: int) -> None:
    address = f"{domain:04x}:{bus:02x}:{device:02x}.{function}"
    assert pci.address_of(address) == pci.address_of(address.upper()) == address


# --- what there is --------------------------------------------------------------------------------


def row(kernel: FakeKernel, name: str) -> Port:
    """Of a card or an interface."""
    (found,) = [port for port in ports(inventory(kernel)) if name in (port.address, port.interface)]
    return found


def test_a_free_card(kernel: FakeKernel) -> None:
    kernel.file(f"{DEVICES}/{A}/numa_node", "1")
    port = row(kernel, A)
    assert (port.interface, port.model, port.driver, port.numa_node, port.iommu_group) == (
        "eth1",
        "8086:10d3",
        "e1000e",
        1,
        "11",
    )
    assert (port.link, port.speed_mbps, port.use, port.default_route, port.port) == (
        True,
        1000,
        None,
        False,
        "af_xdp:eth1",
    )
    assert port.dpdk == f"for DPDK: dutperf ports bind {A}"


def test_the_card_of_the_default_route_is_no_port(kernel: FakeKernel) -> None:
    port = row(kernel, C)
    assert (port.default_route, port.port, port.use) == (True, None, "eth0 is up with 192.0.2.2/24")
    assert port.dpdk == "carries the default route and is never given to DPDK"


def test_a_card_of_dpdk_s_is_named_by_its_address_and_says_who_has_it_open(kernel: FakeKernel, tmp_path: Path) -> None:
    bound(kernel, A)
    kernel.shown.pop(0)
    assert (row(kernel, A).port, row(kernel, A).dpdk) == (A, "is bound to vfio-pci, DPDK can use it")
    kernel.file("proc/4711/comm", "dutperf-engine")
    (tmp_path / "proc/4711/fd").mkdir()
    (tmp_path / "proc/4711/fd/9").symlink_to("/dev/vfio/11")
    assert row(kernel, A).use == "process 4711 (dutperf-engine) has it open"


def test_a_card_whose_driver_dpdk_shares(kernel: FakeKernel) -> None:
    kernel.card("0000:05:00.0", "mlx5_core", group="20")
    kernel.interface("mlx", "0000:05:00.0", addresses=["198.51.100.1/24"])
    port = row(kernel, "mlx")
    assert port.port == "0000:05:00.0"
    assert "DPDK's mlx5 driver shares it" in (port.dpdk or "")


def test_interfaces_without_a_card(kernel: FakeKernel) -> None:
    kernel.interface("tl", linkinfo={"info_kind": "veth"})
    kernel.interface("br0", linkinfo={"info_kind": "bridge"})
    kernel.interface("tun0", link_type="none", linkinfo={"info_kind": "tun"})
    kernel.interface("lo", link_type="loopback")
    assert [(port.interface, port.port) for port in ports(inventory(kernel)) if port.address is None] == [
        ("tl", "af_xdp:tl"),
        ("br0", None),
        ("tun0", None),
    ]
    assert row(kernel, "tl").dpdk is None


def test_a_kernel_without_af_xdp(kernel: FakeKernel) -> None:
    kernel.file("boot/config-6.1.0", "# CONFIG_XDP_SOCKETS is not set")
    assert row(kernel, A).port == "af_packet:eth1"


def test_the_interface_of_a_virtio_card_is_below_its_bus_and_a_usb_adapter_is_no_card(
    kernel: FakeKernel, tmp_path: Path
) -> None:
    for address, kind, below in (("0000:06:00.0", "0x020000", "virtio2"), ("0000:00:14.0", "0x0c0330", "usb1")):
        kernel.card(address, "some", kind=kind)
        kernel.interface(below)
        (tmp_path / DEVICES / address / below).mkdir()
        (tmp_path / f"sys/class/net/{below}/device").symlink_to(tmp_path / DEVICES / address / below)
    assert row(kernel, "virtio2").address == "0000:06:00.0"
    assert row(kernel, "usb1").address is None


def test_an_interface_that_is_down_does_not_say_its_speed(kernel: FakeKernel, tmp_path: Path) -> None:
    (tmp_path / "sys/class/net/eth1/carrier").unlink()  # as reading it fails with EINVAL
    (tmp_path / "sys/class/net/eth1/speed").write_text("-1\n")
    assert (row(kernel, A).link, row(kernel, A).speed_mbps) == (None, None)


# --- the default route ----------------------------------------------------------------------------


def carriers(kernel: FakeKernel) -> list[str]:
    """Cards that carry the default route."""
    return sorted(inventory(kernel).untouchable)


@pytest.mark.parametrize("hop", [{"dev": "vlan7"}, {"nexthops": [{"dev": "eth0"}, {"dev": "vlan7"}]}])
def test_what_is_below_the_default_route_carries_it(kernel: FakeKernel, hop: dict[str, Any]) -> None:
    kernel.interface("bond0", below=["eth1", "eth2"])
    kernel.interface("vlan7", below=["bond0"])
    kernel.routes[:] = [{"dst": "default"} | hop]
    assert carriers(kernel) == ([A, B] if "dev" in hop else [A, B, C])
    assert "carries the default route" in refusal(kernel, A, force=True, no_iommu=True)


def test_any_port_of_an_open_vswitch_may_carry_it(kernel: FakeKernel) -> None:
    kernel.interface("ovs-system", linkinfo={"info_kind": "openvswitch"})
    kernel.interface("br-ex", linkinfo={"info_kind": "openvswitch"})
    kernel.shown[0]["master"] = "ovs-system"
    kernel.routes[:] = [{"dst": "default", "dev": "br-ex"}]
    assert carriers(kernel) == [A]


def test_a_card_whose_virtual_function_carries_it(kernel: FakeKernel, tmp_path: Path) -> None:
    (tmp_path / DEVICES / C / "physfn").symlink_to(tmp_path / DEVICES / A)
    assert carriers(kernel) == [A, C]


def test_ipv6_is_asked_too(kernel: FakeKernel) -> None:
    def ip(argv: Any) -> Done:
        assert "-6" not in argv or "route" in argv
        return Done(0, '[{"dst": "default", "dev": "eth1"}]') if "-6" in argv else kernel.programs(argv)

    kernel.file("proc/net/if_inet6")
    both = FakeKernel(root=kernel.root, run=ip)
    assert carriers(both) == [A, C]


@pytest.mark.skipif(
    shutil.which("ip", path=f"{os.environ['PATH']}:{SYSTEM_PATHS}") is None, reason="needs Debian's iproute2"
)
def test_the_default_route_of_this_machine_is_the_one_that_proc_shows() -> None:
    """Witness: /proc/net/route, in which destination and mask of a default route are zero."""
    routes = [line.split() for line in Path("/proc/net/route").read_text().splitlines()[1:]]
    known = inventory(Machine())
    assert {route[0] for route in routes if route[1] == route[7] == "00000000"} <= known.default_route
    assert [port for port in ports(known) if port.default_route and port.port is not None] == []


@pytest.mark.parametrize(
    ("done", "words"),
    [(Done(127), "apt-get install iproute2"), (Done(0, "ifconfig"), "does not say"), (Done(1, "", "denied"), "denied")],
)
def test_without_knowing_the_default_route_nothing_is_done(kernel: FakeKernel, done: Done, words: str) -> None:
    with pytest.raises(MachineError, match=words):
        inventory(Machine(root=kernel.root, run=lambda _argv: done))


# --- giving away ----------------------------------------------------------------------------------


@pytest.mark.parametrize("names", [[A], ["eth1"], ["01:00.0"], [A.upper(), "eth1"]])
def test_a_card_goes_to_vfio_and_back(kernel: FakeKernel, names: list[str]) -> None:
    assert bound(kernel, *names) == ()
    assert driver(kernel, A) == "vfio-pci"
    assert kernel.written == [
        (f"{DEVICES}/{A}/driver_override", "vfio-pci"),
        ("sys/bus/pci/drivers/e1000e/unbind", A),
        ("sys/bus/pci/drivers_probe", A),
    ]
    assert returned(kernel, A) == ()
    assert driver(kernel, A) == "e1000e"
    assert (kernel.written[3:], driver(kernel, B)) == (
        [
            (f"{DEVICES}/{A}/driver_override", "\n"),
            ("sys/bus/pci/drivers/vfio-pci/unbind", A),
            ("sys/bus/pci/drivers_probe", A),
        ],
        "e1000e",
    )


def test_a_card_without_a_driver(kernel: FakeKernel) -> None:
    kernel.card("0000:07:00.0", None, group="30")
    bound(kernel, "0000:07:00.0")
    assert driver(kernel, "0000:07:00.0") == "vfio-pci"


def test_what_is_done_already(kernel: FakeKernel) -> None:
    assert returned(kernel, A) == (f"{A} already has the kernel's driver e1000e: nothing to do",)
    bound(kernel, A)
    assert bound(kernel, A, B) == (f"{A} is already bound to vfio-pci: nothing to do",)
    assert (driver(kernel, A), driver(kernel, B)) == ("vfio-pci", "vfio-pci")


def test_the_way_back_is_told_with_the_addresses_that_are_lost(kernel: FakeKernel) -> None:
    kernel.shown[0]["addr_info"] = [{"family": "inet", "local": "198.51.100.7", "prefixlen": 24}]
    (step,) = binding.bind(inventory(kernel), [A], Consent(force=True)).steps
    assert step.undo == f"dutperf ports unbind {A} && ip address add 198.51.100.7/24 dev eth1"
    (step,) = binding.bind(inventory(kernel), [B], Consent()).steps
    assert step.undo == f"dutperf ports unbind {B}"
    assert [str(action) for action in step.actions] == [
        f"echo vfio-pci > /{DEVICES}/{B}/driver_override",
        f"echo {B} > /sys/bus/pci/drivers/e1000e/unbind",
        f"echo {B} > /sys/bus/pci/drivers_probe",
    ]


USES: list[tuple[str, dict[str, Any], str]] = [
    (
        "addresses",
        {"addr_info": [{"family": "inet", "local": "198.51.100.7", "prefixlen": 24, "scope": "global"}]},
        "eth1 is up with 198.51.100.7/24",
    ),
    ("a bond", {"master": "bond0"}, "eth1 belongs to bond0"),
]


@pytest.mark.parametrize(("shown", "words"), [row[1:] for row in USES], ids=[row[0] for row in USES])
def test_a_card_that_the_kernel_uses_is_only_taken_by_force(
    kernel: FakeKernel, shown: dict[str, Any], words: str
) -> None:
    kernel.shown[0].update(shown)
    assert f"{A} (eth1): is in use by the kernel: {words}; end that first, or give --force" in refusal(kernel, A)
    bound(kernel, A, force=True)
    assert driver(kernel, A) == "vfio-pci"


def test_other_uses(kernel: FakeKernel, tmp_path: Path) -> None:
    kernel.interface("eth1.5", below=["eth1"])
    assert "eth1 carries eth1.5" in refusal(kernel, A)
    kernel.file(f"{DEVICES}/{B}/sriov_numvfs", "4")
    assert "eth2 has 4 virtual functions" in refusal(kernel, B)
    del kernel.shown[:]
    assert (tmp_path / DEVICES / A / "net").is_dir()
    assert "its interface is in another network namespace" in refusal(kernel, A)


NO_USES: list[tuple[str, dict[str, Any]]] = [
    (
        "an address that every interface has",
        {"addr_info": [{"family": "inet6", "local": "fe80::1", "prefixlen": 64, "scope": "link"}]},
    ),
    (
        "it is down",
        {"flags": [], "addr_info": [{"family": "inet", "local": "198.51.100.7", "prefixlen": 24, "scope": "global"}]},
    ),
]


@pytest.mark.parametrize("shown", [row[1] for row in NO_USES], ids=[row[0] for row in NO_USES])
def test_what_is_no_use(kernel: FakeKernel, shown: dict[str, Any]) -> None:
    kernel.shown[0].update(shown)
    bound(kernel, A)
    assert driver(kernel, A) == "vfio-pci"


WRONG: list[tuple[str, str, str]] = [
    ("no such card", "0000:ff:00.0", "0000:ff:00.0: there is no such PCI device; dutperf ports lists the cards"),
    (
        "a disk",
        "0000:00:1f.2",
        "0000:00:1f.2: is not a network card (its PCI class is 0x010601); dutperf ports lists the cards",
    ),
    (
        "no such interface",
        "eth9",
        (
            "eth9: is neither a PCI address (0000:01:00.0) nor an interface of this network namespace; dutperf ports"
            " lists both"
        ),
    ),
    (
        "no card's",
        "tl",
        "tl: is not a PCI network card, so there is nothing to bind; its port in a configuration is af_xdp:tl",
    ),
    (
        "the default route",
        "eth0",
        f"{C} (eth0): carries the default route, so this machine would go offline; choose another card",
    ),
    (
        "a shared driver",
        "0000:05:00.0",
        "0000:05:00.0: DPDK's mlx5 driver shares the card with the kernel's mlx5_core: leave it bound",
    ),
]


@pytest.mark.parametrize(("name", "message"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_what_cannot_be_given_away(kernel: FakeKernel, name: str, message: str) -> None:
    kernel.card("0000:00:1f.2", "ahci", kind="0x010601")
    kernel.card("0000:05:00.0", "mlx5_core", group="20")
    kernel.interface("tl", linkinfo={"info_kind": "veth"})
    assert refusal(kernel, A, name, force=True, no_iommu=True).startswith(message)


def test_a_card_is_not_taken_from_within_another_network_namespace(kernel: FakeKernel, tmp_path: Path) -> None:
    for process, namespace in (("self", "net:[4026532001]"), ("1", "net:[4026531840]")):
        (tmp_path / "proc" / process / "ns").mkdir(parents=True)
        (tmp_path / "proc" / process / "ns/net").symlink_to(namespace)
    assert "this network namespace does not show" in refusal(kernel, A)


@pytest.mark.parametrize(
    ("networks", "refused"), [("net:[4026532001]", True), ("net:[4026531840]", False), ("net:[4026531833]", False)]
)
def test_process_1_of_a_container_is_not_the_machine_s(
    networks: str, refused: bool, kernel: FakeKernel, tmp_path: Path
) -> None:
    """It is in the container's namespace, as this process is."""
    for process in ("self", "1"):
        (tmp_path / "proc" / process / "ns").mkdir(parents=True)
        (tmp_path / "proc" / process / "ns/net").symlink_to(networks)
        (tmp_path / "proc" / process / "ns/pid").symlink_to("pid:[4026532777]")
    assert in_another_namespace(kernel) == refused
    if refused:
        assert "outside of a container" in refusal(kernel, A)


def test_an_iommu_group_is_given_away_as_a_whole(kernel: FakeKernel) -> None:
    for address, name in (("0000:08:00.0", "eth8"), ("0000:08:00.1", "eth9")):
        kernel.card(address, "ixgbe", group="40")
        kernel.interface(name, address)
    kernel.card("0000:00:1c.0", "pcieport", kind="0x060400", group="40")
    message = (
        "shares IOMMU group 40 with 0000:08:00.1 (ixgbe), which would have to be bound with it: dutperf ports bind"
        " 0000:08:00.0 0000:08:00.1"
    )
    assert refusal(kernel, "eth8").endswith(message)
    bound(kernel, "eth8", "eth9")
    assert {driver(kernel, "0000:08:00.0"), driver(kernel, "0000:08:00.1")} == {"vfio-pci"}
    assert driver(kernel, "0000:00:1c.0") == "pcieport"


@pytest.mark.parametrize(("other", "kind"), [("ahci", "0x010601"), ("mlx5_core", "0x020000")])
def test_a_group_with_a_device_that_cannot_go(kernel: FakeKernel, other: str, kind: str) -> None:
    kernel.card("0000:00:1f.2", other, kind=kind, group="11")
    assert "and 0000:00:1f.2 cannot be: put the card into another slot" in refusal(kernel, A)


# --- without an IOMMU -----------------------------------------------------------------------------

ADVICE = [
    ("sys/firmware/acpi/tables/DMAR", "add intel_iommu=on iommu=pt to the kernel's command line"),
    ("sys/firmware/acpi/tables/IVRS", "remove amd_iommu=off or iommu=off from the kernel's command line"),
    ("sys/firmware/acpi/tables/FACP", "turn VT-d or AMD-Vi on in the firmware"),
]


@pytest.fixture
def bare(tmp_path: Path) -> FakeKernel:
    """One free card, no IOMMU, no driver for DPDK."""
    made = made_up(tmp_path)
    made.card(A)
    made.interface("eth1", A)
    return made


@pytest.mark.parametrize(("table", "words"), ADVICE)
def test_without_an_iommu_it_says_what_to_do(bare: FakeKernel, table: str, words: str) -> None:
    bare.file(table)
    message = refusal(bare, A)
    assert f"{A} (eth1): this machine uses no IOMMU; " in message
    assert words in message
    assert "or give --no-iommu to do without (uio_pci_generic)" in message


def test_without_an_iommu_by_uio_where_vfio_has_no_such_mode(bare: FakeKernel) -> None:
    bare.file("boot/config-6.1.0", "# CONFIG_VFIO_NOIOMMU is not set")
    bound(bare, A, no_iommu=True)
    assert (driver(bare, A), bare.started) == ("uio_pci_generic", ["modprobe uio_pci_generic"])
    (step,) = binding.unbind(inventory(bare), [A]).steps
    assert step.undo == f"dutperf ports bind {A} --no-iommu"
    assert returned(bare, A) == ()
    assert driver(bare, A) == "e1000e"


def test_without_an_iommu_by_vfio_where_it_can(bare: FakeKernel) -> None:
    bare.file("boot/config-6.1.0", "CONFIG_VFIO_NOIOMMU=y")
    bare.file(NO_IOMMU_MODE, "N")
    assert "(vfio's enable_unsafe_noiommu_mode)" in refusal(bare, A)
    bound(bare, A, no_iommu=True)
    assert bare.started == ["modprobe vfio-pci"]
    assert bare.written[0] == (NO_IOMMU_MODE, "Y")
    assert driver(bare, A) == "vfio-pci"


def test_a_group_that_vfio_made_up_is_none(bare: FakeKernel) -> None:
    bare.in_group(A, "0")
    assert row(bare, A).iommu_group == "0"
    bare.file("sys/kernel/iommu_groups/0/name", "vfio-noiommu")
    assert row(bare, A).iommu_group is None


# --- what goes wrong ------------------------------------------------------------------------------


def test_a_driver_that_is_not_there(bare: FakeKernel) -> None:
    bare.in_group(A, "11")
    with pytest.raises(MachineError, match="'modprobe vfio-pci' failed: modprobe: FATAL: Module vfio-pci not found"):
        bound(but(bare, modules=frozenset()), A)
    assert driver(bare, A) == "e1000e"


def test_a_card_that_vfio_does_not_take_is_given_back(kernel: FakeKernel) -> None:
    strict = but(kernel, refused_by=frozenset({"vfio-pci"}))
    with pytest.raises(
        MachineError, match=r"vfio-pci did not take the card \(see the kernel's log, dmesg\); it was given back"
    ):
        bound(strict, A)
    assert (driver(kernel, A), strict.written[-2:]) == (
        "e1000e",
        [(f"{DEVICES}/{A}/driver_override", "\n"), ("sys/bus/pci/drivers_probe", A)],
    )


def test_a_card_that_somebody_has_open_is_not_taken_back(kernel: FakeKernel, tmp_path: Path) -> None:
    bound(kernel, A)
    kernel.file("proc/4711/comm", "dutperf-engine")
    (tmp_path / "proc/4711/fd").mkdir()
    (tmp_path / "proc/4711/fd/9").symlink_to("/dev/vfio/11")
    with pytest.raises(MachineError, match=rf"{A}: process 4711 \(dutperf-engine\) has it open; end it first"):
        returned(kernel, A)
    assert driver(kernel, A) == "vfio-pci"


def test_the_kernel_s_driver_is_loaded_where_it_is_gone(kernel: FakeKernel) -> None:
    bound(kernel, A)
    del kernel.native[A]
    kernel.file(f"{DEVICES}/{A}/modalias", "pci:v00008086d000010D3")
    with pytest.raises(
        MachineError, match=r"no driver of the kernel took the card back \(modprobe pci:v00008086d000010D3\)"
    ):
        returned(kernel, A)
    assert kernel.started == ["modprobe pci:v00008086d000010D3"]


@pytest.mark.skipif(
    os.geteuid() != 0, reason="root may write everywhere, so files of the kernel's that refuse are needed"
)
def test_what_the_kernel_refuses_is_one_sentence() -> None:
    with pytest.raises(MachineError, match=r"'echo x > /proc/sys/kernel/ostype' failed: .*"):
        Write("proc/sys/kernel/ostype", "x").do(Machine())


def test_a_program_that_is_not_there_is_told_as_a_shell_tells_it() -> None:
    assert run(["no-such-program-anywhere"]).status == 127
    assert run(["sh", "-c", "echo out; echo err >&2; exit 3"]) == Done(3, "out\n", "err\n")


class Ended(PosixPath):
    """The directory of a process that ends as its files are listed."""

    def glob(self, pattern: str) -> Iterator[Any]:
        raise FileNotFoundError(pattern)


def test_a_process_that_ends_meanwhile_has_nothing_open(tmp_path: Path) -> None:
    class Busy(FakeKernel):
        def glob(self, pattern: str) -> list[Path]:
            return [Ended(one) for one in super().glob(pattern)]

    kernel = Busy(root=tmp_path)
    (tmp_path / "proc/815").mkdir(parents=True)
    assert list(openers(kernel, {"/dev/ptp0"})) == []
