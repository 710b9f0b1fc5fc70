# SPDX-License-Identifier: Apache-2.0
"""Where a DUT works, from made-up facts of namespaces as :mod:`dutperf.watch.namespace_probe` has
them."""

from __future__ import annotations

from typing import Any

import pytest

from dutperf.watch.dut_discovery import Discovery, discover

HOST, TESTER, DUT, BEHIND, OTHER = 1, 2, 3, 4, 5
PORTS = ("eth1", "eth2")


def interface(name: str, index: int, peer: tuple[int, int], rps: str = "0", **settings: bool) -> dict[str, Any]:
    """One whose other end is ``peer``: a namespace and an index there."""
    return {
        "name": name,
        "index": index,
        "peer": peer[1],
        "peer_namespace": peer[0],
        "rps": [rps],
        "threaded": False,
        "tun": False,
    } | settings


def process(pid: int, name: str, namespace: int, *cores: str, tuns: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"pid": pid, "name": name, "namespace": namespace, "cores": list(cores), "tuns": list(tuns)}


def facts(
    west: dict[str, Any] | None = None,
    *processes: dict[str, Any],
    more: dict[int, list[dict[str, Any]]] | None = None,
    usable: int = 4,
) -> dict[str, Any]:
    """A DUT between two veth pairs, with the settings ``west`` of its left interface. Another bed
    beside it has the same indices."""
    spaces = {
        HOST: [interface("eth0", 2, (HOST, 2)), interface("docker0", 3, (HOST, 3), rps="f")],
        TESTER: [interface("eth1", 2, (DUT, 2)), interface("eth2", 3, (DUT, 3))],
        DUT: [interface("west", 2, (TESTER, 2)) | (west or {}), interface("east", 3, (TESTER, 3))],
        OTHER: [interface("dl", 2, (99, 2), rps="8"), interface("dr", 3, (99, 3), rps="8")],
    }
    for namespace, interfaces in (more or {}).items():
        spaces[namespace] = [*spaces.get(namespace, []), *interfaces]
    everything_else = [
        process(1, "init", HOST, "0-3"),
        process(77, "other dut", OTHER, "3"),
        process(78, "engine", TESTER, "2"),
    ]
    return {
        "tester": TESTER,
        "host": HOST,
        "usable": list(range(usable)),
        "online": "0-3",
        "namespaces": [
            {"inode": inode, "name": None, "interfaces": interfaces} for inode, interfaces in spaces.items()
        ],
        "processes": [*everything_else, *processes],
    }


def works(found: Discovery) -> dict[str, list[int]]:
    return {work.what: sorted(work.cores) for work in found.works}


TUN = {DUT: [interface("siit0", 4, (DUT, 4), tun=True)]}
THREADED = {"threaded": True}


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        pytest.param(facts(), {}, id="nowhere in particular"),
        pytest.param(facts({"rps": ["2"]}), {"receive packet steering of west": [1]}, id="receive packet steering"),
        pytest.param(facts(None, process(9, "tayga", DUT, "1")), {"tayga (9)": [1]}, id="a process"),
        pytest.param(
            facts(None, process(9, "vpp", DUT, "0-3", "2")),
            {"vpp (9)": [0, 1, 2, 3]},
            id="a process whose threads differ",
        ),
        pytest.param(
            facts(None, process(9, "tayga", HOST, "1", tuns=("siit0",)), more=TUN),
            {"tayga (9)": [1]},
            id="who owns a TUN device from elsewhere",
        ),
        pytest.param(
            facts(None, process(9, "tayga", OTHER, "1", tuns=("siit0",)), more={OTHER: TUN[DUT]}),
            {},
            id="a TUN device that is none of the DUT's",
        ),
        pytest.param(
            facts(THREADED, process(9, "napi/west-81", HOST, "2"), process(10, "napi/east-82", HOST, "3")),
            {"napi/west-81 (9)": [2]},
            id="threaded NAPI",
        ),
    ],
)
def test_what_the_dut_does_and_where(seen: dict[str, Any], expected: dict[str, list[int]]) -> None:
    assert works(discover(seen, PORTS)) == expected


def test_who_has_a_port_of_the_tester_open_is_the_dut() -> None:
    """A virtual machine at two TAP devices."""
    taps = {TESTER: [interface("tap0", 8, (TESTER, 8), tun=True), interface("tap1", 9, (TESTER, 9), tun=True)]}
    seen = facts(None, process(9, "qemu", TESTER, "1", tuns=("tap0", "tap1")), more=taps)
    found = discover(seen, ("tap0", "tap1"))
    assert (works(found), found.pids, found.missing) == ({"qemu (9)": [1]}, (9,), ())
    assert discover(seen, PORTS).pids == ()


def test_a_long_name_of_an_interface_is_cut_in_the_name_of_its_thread() -> None:
    seen = facts({"threaded": True, "name": "a_long_west_0"}, process(9, "napi/a_long_wes", HOST, "2"))
    assert works(discover(seen, PORTS)) == {"napi/a_long_wes (9)": [2]}


def test_a_dut_of_several_namespaces_is_followed_to_its_end() -> None:
    behind = {DUT: [interface("through", 5, (BEHIND, 9))], BEHIND: [interface("back", 9, (DUT, 5), rps="8")]}
    found = discover(facts(None, process(9, "snort", BEHIND, "2"), more=behind), PORTS)
    assert works(found) == {"receive packet steering of back": [3], "snort (9)": [2]}
    assert found.namespaces == (DUT, BEHIND)


def test_a_dut_on_the_host_is_its_interface_alone() -> None:
    """All else that runs there is not the DUT."""
    seen = facts()
    seen["namespaces"][1]["interfaces"] = [interface("eth1", 2, (HOST, 7))]
    seen["namespaces"][0]["interfaces"] += [interface("veth7", 7, (TESTER, 2), rps="2")]
    found = discover(seen, ("eth1",))
    assert works(found) == {"receive packet steering of veth7": [1]}
    assert found.namespaces == ()


def test_the_namespace_where_the_command_was_given_is_not_the_duts_alone() -> None:
    found = discover(facts({"rps": ["2"]}, process(9, "bash", DUT, "0-3")), PORTS, shared=[DUT])
    assert works(found) == {"receive packet steering of west": [1]}


def test_a_cable_between_the_testers_ports_has_no_dut() -> None:
    seen = facts({"rps": ["2"]})
    seen["namespaces"][1]["interfaces"] = [
        interface("eth1", 2, (TESTER, 3)),
        interface("eth2", 3, (TESTER, 2), rps="4"),
    ]
    found = discover(seen, PORTS)
    assert (found.works, found.missing) == ((), PORTS)


@pytest.mark.parametrize("end", [(99, 2), (None, 2), (OTHER, 2), (TESTER, 2)])
def test_an_end_that_does_not_lead_back_is_none(end: tuple[int, int]) -> None:
    seen = facts({"rps": ["2"]})
    seen["namespaces"][1]["interfaces"][0] = interface("eth1", 2, end)
    assert discover(seen, ("eth1",)).missing == ("eth1",)


def test_cores_are_those_that_something_is_confined_to() -> None:
    """What may run on every core says nothing: somebody's shell in that namespace, TAYGA as it
    comes."""
    found = discover(facts({"rps": ["2"]}, process(9, "tayga", DUT, "0-3"), process(10, "vpp", DUT, "2-3")), PORTS)
    assert (found.cores, [work.what for work in found.floating]) == ({1, 2, 3}, ["tayga (9)"])
    assert found.steered


@pytest.mark.parametrize(
    ("usable", "cores", "floats"),
    [(1, "0", False), (1, "0-3", True), (2, "0-1", True), (2, "0", False), (4, "0-2", False)],
)
def test_anywhere_is_every_core_of_the_machine_or_of_those_that_the_tester_may_use(
    usable: int, cores: str, floats: bool
) -> None:
    found = discover(facts(None, process(9, "tayga", DUT, cores), usable=usable), PORTS)
    assert bool(found.floating) is floats
    assert bool(found.cores) is not floats
