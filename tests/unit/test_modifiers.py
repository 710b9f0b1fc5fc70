# SPDX-License-Identifier: Apache-2.0
"""Modifiers (RFC 2544 section 11, RFC 5180 sections 5.3 and 6): their texts, and the frames that they
change."""

from __future__ import annotations

from typing import Any

import pytest

from dutperf import traffic
from dutperf.lab import filters
from dutperf.model import Direction, Stream
from dutperf.results import deviations
from dutperf.setup.conditions import Usual, make
from dutperf.setup.configuration import ParameterError, Setup, parse
from dutperf.setup.modifiers import MOST_FILTERS, ExtensionHeaders, Modifiers
from plans import make_trial

LEFT = {"port": "af_packet:tl", "version": 4, "ipv4": "198.18.0.2/24", "gateway4": "198.18.0.1"}
RIGHT = {"port": "af_packet:tr", "version": 4, "ipv4": "198.19.0.2/24", "gateway4": "198.19.0.1"}
LEFT6 = {"port": "af_packet:tl", "version": 6, "ipv6": "2001:2::2/64", "gateway6": "2001:2::1"}
RIGHT6 = {"port": "af_packet:tr", "version": 6, "ipv6": "2001:2:0:8000::2/64", "gateway6": "2001:2:0:8000::1"}
IPV4 = parse({"left": LEFT, "right": RIGHT}, "test")
IPV6 = parse({"left": LEFT6, "right": RIGHT6}, "test")
SIIT = parse({"left": LEFT6 | {"seen_as": "198.18.0.2"}, "right": RIGHT | {"seen_as": "2001:2:0:1000::2"}}, "test")


def streams(setup: Setup, *modifiers: str, rate_fps: int = 1000, **conditions: Any) -> dict[Direction, Stream]:
    chosen = traffic.of(setup, Usual(modifiers=modifiers, **conditions)).sized()
    return make_trial(setup, chosen, chosen.frame_sizes[0], rate_fps, 3).streams()


def headers(frame: bytes) -> list[int]:
    """Next headers of a frame of IPv6, up to UDP, ESP or none."""
    at, following = 54, frame[20]
    found = [following]
    while following not in (17, 50, 59):
        size = {44: 8, 51: 4 * (frame[at + 1] + 2)}.get(following, 8 * (frame[at + 1] + 1))
        following, at = frame[at], at + size
        found.append(following)
    return found


# --- texts ----------------------------------------------------------------------------------------


def test_texts_are_read_in_any_order_and_said_in_one() -> None:
    chosen = make(Usual, {"modifiers": ["filters:25", "extension-header:hop-by-hop:10%", "broadcast"]})
    assert chosen.modifiers == ("broadcast", "filters:25", "extension-header:hop-by-hop:10%")
    assert chosen.modified_by == Modifiers(
        broadcast=True, filters=25, extension_headers=ExtensionHeaders(("hop-by-hop",), 10)
    )
    assert make(Usual, {"modifiers": "management, routing-updates"}).modifiers == ("management", "routing-updates")
    assert Usual.recorded(chosen.stated()) == chosen
    assert Usual().modified_by == Modifiers()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("broadcasts", "'broadcasts' is no modifier; there are broadcast, management"),
        ("filters", "filters: give the number of filters, 1 to 100"),
        ("filters:0", "filters:0: give the number"),
        ("filters:101", "filters:101: give the number"),
        ("extension-header", "is no modifier"),
        ("extension-header:", "give one of hop-by-hop, routing, destination, fragment, authentication, esp, mobility"),
        ("extension-header:jumbo", "extension-header:jumbo: give one of"),
        ("extension-header:esp+destination", "nothing can follow esp or mobility"),
        ("extension-header:routing:0%", "a share of the frames is 1% to 100%"),
        ("extension-header:routing:", "a share of the frames is 1% to 100%"),
        ("extension-header:routing:101%", "a share of the frames is 1% to 100%"),
        ("extension-header:routing+routing", "the same header twice"),
        ("extension-header:hop-by-hop+fragment", "a chain has no hop-by-hop header"),
        ("broadcast,broadcast", "broadcast is given twice"),
    ],
)
def test_errors_name_what_is_wrong(text: str, reason: str) -> None:
    with pytest.raises(ParameterError, match=reason) as caught:
        make(Usual, {"modifiers": text})
    assert caught.value.key == "modifiers"


def test_a_measurement_is_named_after_its_modifiers() -> None:
    assert Usual(modifiers=("filters:25", "broadcast")).mix == "-broadcast-filters25"
    assert Usual(modifiers=("extension-header:routing+fragment:50%",)).mix == ("-extension-headerrouting-fragment50pc")


# --- extension headers ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "numbers", "smallest"),
    [
        ("hop-by-hop", [0, 17], 92),
        ("routing", [43, 17], 108),
        ("destination", [60, 17], 92),
        ("fragment", [44, 17], 92),
        ("routing+destination+fragment", [43, 60, 44, 17], 124),
        ("authentication", [51, 17], 108),
        ("esp", [50], 84),
        ("mobility", [135, 59], 84),
        ("destination+authentication+esp", [60, 51, 50], 116),
    ],
)
def test_frames_have_the_extension_headers(name: str, numbers: list[int], smallest: int) -> None:
    for stream in streams(IPV6, f"extension-header:{name}").values():
        [frame] = stream.frames
        assert headers(bytes.fromhex(frame.bytes)) == numbers
        assert frame.size == smallest


def test_the_chain_of_rfc5180_is_longer_than_32_bytes() -> None:
    plain, chained = (
        streams(IPV6, *modifiers, frame="ip/udp", frame_sizes=(200,))[Direction.FORWARD].frames[0].tag_at
        for modifiers in ((), ("extension-header:routing+destination+fragment",))
    )
    assert chained - plain == 24 + 8 + 8


def test_a_share_of_the_frames_has_them_at_even_distances() -> None:
    stream = streams(IPV6, "extension-header:hop-by-hop:10%")[Direction.FORWARD]
    kinds = [headers(bytes.fromhex(frame.bytes)) for frame in stream.frames]
    assert kinds == [[17], [0, 17]]
    assert stream.order.count(1) * 10 == len(stream.order) == 10
    assert {frame.size for frame in stream.frames} == {92}, "a common size, as RFC 5180 5.3 asks"
    assert [frame.name for frame in stream.frames] == [
        "without extension headers, 92 bytes",
        "with hop-by-hop, 92 bytes",
    ]


def test_they_stand_behind_the_first_ip_header_of_other_headers() -> None:
    frame = streams(IPV6, "extension-header:destination", frame="vlan(id=5)/ip/udp(destination=9)")
    head = bytes.fromhex(frame[Direction.FORWARD].frames[0].bytes)
    assert (head[12:14].hex(), head[16:18].hex(), head[24], head[58]) == ("8100", "86dd", 60, 17)


def test_through_a_translator_only_ipv6_has_them() -> None:
    both = streams(SIIT, "extension-header:fragment")
    assert headers(bytes.fromhex(both[Direction.FORWARD].frames[0].bytes)) == [44, 17]
    assert bytes.fromhex(both[Direction.REVERSE].frames[0].bytes)[12:14].hex() == "0800"


def test_without_ipv6_they_are_an_error() -> None:
    with pytest.raises(ParameterError, match="no side sends any") as caught:
        streams(IPV4, "extension-header:fragment")
    assert caught.value.key == "modifiers"
    with pytest.raises(ParameterError, match="no side sends any"):
        streams(SIIT, "extension-header:fragment", directions="reverse")
    with pytest.raises(ParameterError, match="no side sends any"):
        streams(IPV6, "extension-header:fragment", frame="ipv4(source=198.18.0.2,destination=198.19.0.2)/udp")


def test_headers_that_have_it_already_are_no_fault_of_the_text() -> None:
    with pytest.raises(
        ParameterError, match="frame: the modifier extension-header does not go with eth/ipv6/hop_by_hop/udp"
    ):
        streams(IPV6, "extension-header:hop-by-hop", frame="ip/hop_by_hop/udp")


def test_headers_may_be_ipv6_whatever_the_sides_are() -> None:
    """Not the version of a side counts, but that of the frames."""
    both = streams(IPV4, "extension-header:fragment", frame="ipv6(source=2001:2::2,destination=2001:2:0:1::2)/udp")
    assert [headers(bytes.fromhex(one.frames[0].bytes)) for one in both.values()] == [[44, 17], [44, 17]]


# --- filters --------------------------------------------------------------------------------------


def test_all_but_the_last_filter_deny() -> None:
    text = filters.ruleset(25)
    for chain in ("from_dl_4", "from_dl_6", "from_dr_4", "from_dr_6"):
        rules = text.partition(f"chain {chain} {{")[2].partition("}")[0].strip().splitlines()
        assert [rule.rsplit(" ", 1)[1] for rule in rules] == ["drop"] * 24 + ["accept", "drop"]
        assert len(set(rules)) == 26
        assert all("198.18.0." not in rule and "198.19.0.2" not in rule for rule in rules[:24])
    assert text.count("ip saddr 198.18.24.24 ip daddr 198.19.124.24 counter drop") == 1


def test_no_filters_remove_the_table() -> None:
    assert filters.ruleset(0).splitlines() == ["table inet filters { }", "delete table inet filters"]


def test_the_most_filters_have_addresses() -> None:
    assert f"198.18.{MOST_FILTERS - 1}.{MOST_FILTERS - 1} ip daddr 198.19.199.99" in filters.ruleset(MOST_FILTERS)


# --- deviations -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("modifiers", "deviates"),
    [
        ((), False),
        (("filters:25",), False),
        (("filters:25", "extension-header:destination"), False),
        (("filters:25", "broadcast"), True),
        (("filters:25", "extension-header:destination", "broadcast"), True),
    ],
)
def test_several_at_once_are_a_deviation_but_not_extension_headers_at_filters(
    modifiers: tuple[str, ...], deviates: bool
) -> None:
    chosen = Usual(modifiers=modifiers)
    found = deviations.deviations(deviations.GENERAL[-2:-1], chosen, frames=[], repetitions=1)
    assert [one.clause for one in found] == ["RFC 2544 section 11"] * deviates
