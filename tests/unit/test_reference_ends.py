# SPDX-License-Identifier: Apache-2.0
"""Labs with reference DUTs at both ends: which DUT has which properties, what the tester sends, addresses of CEs."""

from __future__ import annotations

from ipaddress import IPv6Address
from typing import Any

import pytest

from dutperf.lab.memif import Ports
from dutperf.lab.refdut import NatProperties, Properties
from dutperf.lab.reference_ends import TECHNOLOGIES, ReferenceEnd, map_e, tunnelled

PORTS = Ports("dl", "dr")


def options(name: str, **chosen: str) -> Any:
    """Options of a lab."""
    return TECHNOLOGIES[name].options.model_validate(chosen)


def end(name: str, place: int, *, alone: bool = False, **chosen: str) -> ReferenceEnd:
    """A DUT of a lab."""
    technology = TECHNOLOGIES[name]
    return ReferenceEnd(technology, technology.domain(options(name, **chosen)), place, alone)


@pytest.mark.parametrize(
    ("given", "capacities"),
    [
        ({}, [4000, None]),
        ({"properties_of": "right"}, [None, 4000]),
        ({"properties_of": "both"}, [4000, 4000]),
    ],
)
def test_the_capacity_is_that_of_the_dut_that_was_chosen(given: dict[str, str], capacities: list[int | None]) -> None:
    chosen = options("map-e", capacity_fps="4000", stall_ms="5", **given)
    found = [chosen.properties_at(place) for place in (0, 1)]
    assert [None if one is None else one.capacity_fps for one in found] == capacities
    for place, capacity in enumerate(capacities):
        assert ("capacity_fps" in chosen.chosen_at(place)) == ("stall_ms" in chosen.chosen_at(place)) == bool(capacity)


def test_an_aftr_has_its_nat_whoever_has_the_capacity() -> None:
    chosen = options("ds-lite", capacity_fps="4000", connections="100")
    b4, aftr = (chosen.properties_at(place) for place in (0, 1))
    assert (type(b4), b4.capacity_fps) == (Properties, 4000)
    assert isinstance(aftr, NatProperties)
    assert (aftr.connections, aftr.capacity_fps) == (100, 0)
    assert "connections" not in chosen.chosen_at(0)
    assert chosen.chosen_at(1)["connections"] == 100
    assert "nat" not in end("ds-lite", 0).request(PORTS, chosen, shares_core=False)
    assert end("ds-lite", 1).request(PORTS, chosen, shares_core=False)["nat"]["pool"] == ["198.19.254.129"]


@pytest.mark.parametrize(
    ("given", "first", "last"),
    [
        ({"psid_length": "8", "psid": "52"}, 64720, 64723),  # the example of RFC 7597 5.1
        ({"psid_length": "8", "psid": "52", "psid_offset": "0"}, 0x3400, 0x34FF),
        ({"psid_length": "1", "psid": "1", "psid_offset": "4"}, 0xF800, 0xFFFF),
    ],
)
def test_the_tester_uses_ports_of_the_port_set(given: dict[str, str], first: int, last: int) -> None:
    assert options("map-e", **given).ports() == (first, last)
    assert options("map-e").ports() is None


@pytest.mark.parametrize("length", range(1, 9))
def test_a_ce_has_the_address_of_its_rule(length: int) -> None:
    domain = map_e(options("map-e", psid_length=str(length), psid="1"))
    address, _ = domain.between
    number = int(IPv6Address(address))
    assert (
        number >> (128 - 52 - 4 - length) == int(IPv6Address("2001:2:0:3000::")) >> 76 << 4 + length | 2 << length | 1
    )
    assert number & 0xFFFF_FFFF_FFFF == 0xC612_0002_0001


@pytest.mark.parametrize(
    ("name", "place", "side", "expected"),
    [
        ("map-e", 0, "right", ("2001:2:0:4000::b/64", "2001:2:0:4000::1", "ipv6(destination=2001:2:0:3000:0:c612::)")),
        ("ds-lite", 1, "left", ("2001:2:0:3000::b4/64", "2001:2:0:3000::1", "ipv6(destination=2001:2:0:4000::b)")),
        ("6rd", 1, "left", ("198.18.64.128/24", "198.18.64.253", "ipv4(destination=198.18.64.254)")),
    ],
)
def test_the_tester_is_the_other_end(name: str, place: int, side: str, expected: tuple[str, ...]) -> None:
    found = tunnelled(end(name, place, alone=True))[side]
    version = 4 if name == "6rd" else 6
    assert (found[f"ipv{version}"], found[f"gateway{version}"], found["tunnel"]) == expected
