# SPDX-License-Identifier: Apache-2.0
"""From set-up and conditions to a trial: who sends what to whom, and of which size."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dutperf import traffic
from dutperf.model import FRAME_SIZE, FRAME_SIZE_IPV4, Case, FieldMode, FrameSpec, Load, Trial
from dutperf.setup.conditions import Conditions, Foreground, Rate, SingleTrial, Usual
from dutperf.setup.configuration import ConfigError, Dut, LinkBetween, ParameterError, Setup, parse
from dutperf.setup.ports import by_packet_sockets, open_request, with_media
from dutperf.traffic.base import MAX_FRAMES
from dutperf.traffic.udp_ports import destination_ports, source_ports
from plans import NAT44, make_trial
from protocol_schemas import REQUESTS

LEFT6 = {"port": "af_packet:tl", "version": 6, "ipv6": "2001:2::2/64", "gateway6": "2001:2::1"}
LEFT4 = {"port": "af_packet:tl", "version": 4, "ipv4": "198.18.0.2/24", "gateway4": "198.18.0.1"}
RIGHT4 = {"port": "af_packet:tr", "version": 4, "ipv4": "198.19.0.2/24", "gateway4": "198.19.0.1"}
RIGHT6 = {"port": "af_packet:tr", "version": 6, "ipv6": "2001:2:0:8000::2/64", "gateway6": "2001:2:0:8000::1"}

SIIT = parse(
    {"left": LEFT6 | {"seen_as": "198.18.0.2"}, "right": RIGHT6 | RIGHT4 | {"seen_as": "2001:2:0:1000::2"}}, "test"
)
SIIT_MIRRORED = parse(
    {"left": LEFT6 | LEFT4 | {"seen_as": "2001:2:0:1000::2"}, "right": RIGHT4 | RIGHT6 | {"seen_as": "198.19.0.2"}},
    "test",
)
IPV4 = parse({"left": LEFT4, "right": RIGHT4}, "test")
STATIC_NAT44 = parse({"left": LEFT4, "right": RIGHT4 | {"seen_as": "198.18.0.9"}}, "test")
IPV4_BOTH = parse({"left": LEFT6 | LEFT4, "right": RIGHT6 | RIGHT4}, "test")
IPV6 = parse({"left": LEFT6, "right": RIGHT6}, "test")

ALL = Usual()
MIXED = Usual(foreground="10:9")
NATIVE = Usual(foreground="2:0")


def frame(spec: FrameSpec | None) -> tuple[int, int, str, str] | None:
    return None if spec is None else (spec.version, spec.size, str(spec.source), str(spec.destination))


L4, R4, L6, R6 = "198.18.0.2", "198.19.0.2", "2001:2::2", "2001:2:0:8000::2"
NATIVE6 = ((6, 128, L6, R6), (6, 128, R6, L6))
FRAMES: list[tuple[str, Setup, Conditions, Any, Any, Any, Any]] = [
    # set-up, conditions, foreground forward and reverse, background forward and reverse, all for
    # frame size 128
    ("SIIT", SIIT, ALL, (6, 128, L6, "2001:2:0:1000::2"), (4, 108, R4, "198.18.0.2"), None, None),
    ("SIIT with background", SIIT, MIXED, (6, 128, L6, "2001:2:0:1000::2"), (4, 108, R4, "198.18.0.2"), *NATIVE6),
    ("SIIT mirrored", SIIT_MIRRORED, ALL, (4, 108, L4, "198.19.0.2"), (6, 128, R6, "2001:2:0:1000::2"), None, None),
    ("static NAT44", STATIC_NAT44, ALL, (4, 128, L4, "198.18.0.9"), (4, 128, R4, L4), None, None),
    ("IPv4 router", IPV4, ALL, (4, 128, L4, R4), (4, 128, R4, L4), None, None),
    ("IPv4 router with background", IPV4_BOTH, MIXED, (4, 108, L4, R4), (4, 108, R4, L4), *NATIVE6),
    ("IPv4 router, background only", IPV4_BOTH, NATIVE, (4, 108, L4, R4), (4, 108, R4, L4), *NATIVE6),
    ("IPv6 router", IPV6, ALL, NATIVE6[0], NATIVE6[1], None, None),
]


@pytest.mark.parametrize(
    ("setup", "conditions", "forward", "reverse", "there", "back"),
    [row[1:] for row in FRAMES],
    ids=[row[0] for row in FRAMES],
)
def test_who_sends_what_to_whom(
    setup: Setup, conditions: Conditions, forward: Any, reverse: Any, there: Any, back: Any
) -> None:
    trial = make_trial(setup, conditions, 128, 1000, 7)
    assert trial.forward is not None
    assert trial.reverse is not None
    assert (frame(trial.forward.foreground), frame(trial.reverse.foreground)) == (forward, reverse)
    assert (frame(trial.forward.background), frame(trial.reverse.background)) == (there, back)


@pytest.mark.parametrize(
    ("setup", "conditions", "smallest"),
    [(SIIT, ALL, 84), (IPV6, ALL, 84), (IPV4, ALL, 64), (IPV4_BOTH, MIXED, 84), (IPV4_BOTH, NATIVE, 84)],
)
def test_sizes_that_are_impossible(setup: Setup, conditions: Conditions, smallest: int) -> None:
    assert traffic.of(setup, conditions).smallest_frame_size == smallest
    for size in (smallest, 1518, 9216):
        make_trial(setup, conditions, size, 1, 0)
    for size in (smallest - 1, 9217):
        with pytest.raises(ConfigError) as caught:
            make_trial(setup, conditions, size, 1, 0)
        assert caught.value.key == "frame_sizes"
        assert str(size) in str(caught.value)
        assert str(smallest) in str(caught.value)


def test_one_bad_size_among_many_is_found_beforehand() -> None:
    traffic.of(SIIT, Usual(frame_sizes=(84, 1518))).check()
    with pytest.raises(ConfigError):
        traffic.of(SIIT, Usual(frame_sizes=(84, 64, 1518))).check()


@pytest.mark.parametrize(
    ("setup", "conditions", "ipv4"),
    [
        (SIIT, Usual(frame_sizes=(84, 1518)), [64, 1498]),
        (SIIT, Usual(frame_sizes=(84,), directions="forward"), [64]),
        (IPV4, Usual(frame_sizes=(64, 84)), [64, 84]),
    ],
)
def test_each_frame_size_is_a_case_that_knows_the_ipv4_frames(
    setup: Setup, conditions: Conditions, ipv4: list[int]
) -> None:
    cases = traffic.of(setup, conditions).cases()
    assert [case.key() for case in cases] == [{"frame_size": size} for size in conditions.frame_sizes]
    assert [case[FRAME_SIZE_IPV4] for case in cases] == ipv4
    for case, size in zip(cases, ipv4, strict=True):
        trial = make_trial(setup, conditions, case[FRAME_SIZE], 1, 0)
        frames = [stream.foreground for stream in trial.streams().values()]
        assert {frame.size for frame in frames if frame.version == 4} <= {size}
        assert trial.longest_frame == max(frame.size for frame in frames)


def test_reverse_alone_through_a_translator_keeps_the_ipv6_size() -> None:
    trial = make_trial(SIIT, Usual(directions="reverse"), 84, 1000, 0)
    assert trial.forward is None
    assert trial.reverse is not None
    assert trial.reverse.foreground.size == 64
    assert traffic.of(SIIT, Usual(directions="reverse")).size_ipv4(84) == 64


PORTS = [
    (FieldMode.FIXED, (0xC020, 0xC020), (7, 7)),
    (FieldMode.RANDOM, (1024, 65535), (1, 49151)),
    (FieldMode.INCREASING, (1024, 65535), (1, 49151)),
    (FieldMode.DECREASING, (1024, 65535), (1, 49151)),
]


@pytest.mark.parametrize(("mode", "source", "destination"), PORTS)
def test_ports(mode: FieldMode, source: tuple[int, int], destination: tuple[int, int]) -> None:
    trial = make_trial(IPV4, Usual(ports=mode), 64, 1, 0)
    for stream in trial.streams().values():
        assert (stream.source_port.mode, stream.source_port.min, stream.source_port.max) == (mode, *source)
        assert (stream.destination_port.mode, stream.destination_port.min, stream.destination_port.max) == (
            mode,
            *destination,
        )


def test_a_varying_address_is_a_source_one_way_and_a_destination_the_other() -> None:
    varying = {"mode": "random", "min": 0, "max": 255}
    setup = parse({"left": LEFT4 | {"varying_address": varying}, "right": RIGHT4}, "test")
    trial = make_trial(setup, ALL, 64, 1, 0)
    assert trial.forward is not None
    assert trial.reverse is not None
    assert (trial.forward.source_address, trial.forward.destination_address) == (setup.left.varying_address, None)
    assert (trial.reverse.source_address, trial.reverse.destination_address) == (None, setup.left.varying_address)
    with pytest.raises(ConfigError) as caught:
        make_trial(setup, Usual(networks=2), 64, 1, 0)
    assert caught.value.key == "networks"


LACKING = [
    ("IPv6 on the left", LEFT4, RIGHT6 | RIGHT4, "left.ipv6"),
    ("IPv6 on the right", LEFT6 | LEFT4, RIGHT4, "right.ipv6"),
    (
        "a gateway",
        {key: value for key, value in (LEFT6 | LEFT4).items() if key != "gateway6"},
        RIGHT6 | RIGHT4,
        "left.gateway6",
    ),
]


@pytest.mark.parametrize(("left", "right", "key"), [row[1:] for row in LACKING], ids=[row[0] for row in LACKING])
def test_background_needs_ipv6_on_both_sides(left: dict[str, Any], right: dict[str, Any], key: str) -> None:
    setup = parse({"left": left, "right": right}, "test")
    make_trial(setup, ALL, 84, 1, 0)
    with pytest.raises(ConfigError) as caught:
        make_trial(setup, MIXED, 84, 1, 0)
    assert caught.value.key == key
    assert "`foreground` 10:9" in str(caught.value)


MAXIMA = [
    # RFC 5180 A.1 and RFC 2544's well-known figures: Mbit/s, frame size, frames/s
    (10, 64, 14_880),
    (100, 64, 148_809),
    (1_000, 64, 1_488_095),
    (1_000, 1518, 81_274),
    (10_000, 64, 14_880_952),
    (10_000, 84, 12_019_230),
    (10_000, 9216, 135_339),
    (None, 64, None),
]


@pytest.mark.parametrize(("media_mbps", "size", "fps"), MAXIMA)
def test_the_media_s_maximum(media_mbps: int | None, size: int, fps: int | None) -> None:
    assert (
        traffic.of(IPV4.model_copy(update={"media_mbps": media_mbps}), Usual()).maximum_fps(Case({FRAME_SIZE: size}))
        == fps
    )


IN_A_ROW = IPV4.model_copy(update={"dut": (Dut(name="CLAT"), Dut(name="PLAT")), "media_mbps": 1_000})
BETWEEN = [
    ({}, {}, 1_488_095),
    ({"overhead": 20}, {}, 1_201_923),  # 64 + 20 bytes, and 20 of preamble and gap
    ({"overhead": 20}, {"foreground": "10:9"}, 1_201_923),  # native IPv6 of 84 bytes stays as it is
    ({"overhead": 40}, {"foreground": "10:9"}, 1_008_064),
    ({"overhead": 20, "mbps": 100}, {}, 120_192),
    ({"mbps": 10_000}, {}, 1_488_095),
    ({"overhead": -20}, {}, 1_488_095),
    ({"overhead": 20}, {"frame_sizes": "imix:64=2,68=1"}, 1_000_000_000 * 3 // (8 * (84 + 84 + 88 + 3 * 20))),
]


@pytest.mark.parametrize(("link", "conditions", "fps"), BETWEEN)
def test_the_maximum_is_that_of_the_slowest_link(link: dict[str, int], conditions: dict[str, Any], fps: int) -> None:
    """Between DUTs in a row frames may be longer (RFC 8219 appendix A)."""
    setup = IN_A_ROW.model_copy(update={"between": (LinkBetween(**link),)})
    kind = traffic.of(setup, traffic.of(setup, Usual(**conditions)).sized())
    [case] = kind.cases()
    assert kind.maximum_fps(case) == fps


@pytest.mark.parametrize(
    ("link", "conditions", "need"),
    [
        ({"overhead": 20, "mtu": 1500}, {"frame_sizes": (64, 1518)}, 1520),
        ({"overhead": 20, "mtu": 1519}, {"frame_sizes": "imix:64=1,1518=1"}, 1520),
        ({"mtu": 1499}, {"frame_sizes": (1518,)}, 1500),
        ({"overhead": 20, "mtu": 1520}, {"frame_sizes": (64, 1518)}, None),
        ({"overhead": 20}, {"frame_sizes": (1518,)}, None),
    ],
)
def test_frames_that_do_not_fit_between_duts_are_refused(
    link: dict[str, int], conditions: dict[str, Any], need: int | None
) -> None:
    setup = IN_A_ROW.model_copy(update={"between": (LinkBetween(**link),)})
    checked = traffic.of(setup, traffic.of(setup, Usual(**conditions)).sized())
    if need is None:
        checked.check()
        return
    with pytest.raises(ParameterError) as error:
        checked.check()
    assert error.value.message == (
        f"frames of 1,518 bytes need an MTU of {need:,} between CLAT and PLAT, which have {link['mtu']:,}"
        f" (between.mtu): they would drop or fragment them; frames of {1518 - need + link['mtu']:,} bytes fit"
    )


def test_the_speed_between_duts_alone_is_a_maximum_too() -> None:
    setup = IN_A_ROW.model_copy(update={"between": (LinkBetween(mbps=100),), "media_mbps": None})
    assert traffic.of(setup, Usual()).maximum_fps(Case({FRAME_SIZE: 64})) == 148_809


@pytest.mark.parametrize(
    ("streams", "size", "fps"),
    [
        ([{"sizes": 84}], 1518, 1_201_923),
        ([{"sizes": 1518}], 84, 81_274),
        ([{"sizes": 1518, "directions": "forward"}, {"sizes": 84, "directions": "reverse"}], 64, 81_274),
        ([{"sizes": 84, "share": 3}, {"sizes": 104}], 1518, 1_000_000_000 // (8 * (89 + 20))),
    ],
)
def test_the_media_s_maximum_is_that_of_the_sizes_of_streams(
    streams: list[dict[str, Any]], size: int, fps: int
) -> None:
    """Not that of the size that is measured, which none of them has."""
    named = [{"name": f"s{number}", **one} for number, one in enumerate(streams)]
    setup = parse({**NAT44, "media_mbps": 1_000, "streams": named}, "test")
    assert traffic.of(setup, Usual()).maximum_fps(Case({FRAME_SIZE: size})) == fps


def test_the_media_s_maximum_of_a_mix_is_not_above_the_line() -> None:
    """A mean of 65.33 bytes: as 65 bytes, 0.4 % more than the line carries."""
    setup = IPV4.model_copy(update={"media_mbps": 1_000})
    sized = traffic.of(setup, Usual(frame_sizes="imix:64=2,68=1")).sized()
    [size] = sized.frame_sizes
    fps = traffic.of(setup, sized).maximum_fps(Case({FRAME_SIZE: size}))
    assert fps == 1_000_000_000 * 3 // (8 * (64 + 64 + 68 + 3 * 20)) == 1_464_843
    assert traffic.of(setup, Usual()).maximum_fps(Case({FRAME_SIZE: size})) == 1_470_588


@pytest.mark.parametrize(
    "members",
    [{"pattern": "ramp:10%-150%"}, {"pattern": "bursts:10", "burst_rate": Rate.parse("150%")}],
)
def test_rates_above_the_media_are_refused(members: dict[str, Any]) -> None:
    setup = IPV4.model_copy(update={"media_mbps": 1_000})
    with pytest.raises(ParameterError, match="2,232,142 frames/s are above the media's maximum of 1,488,095"):
        make_trial(setup, SingleTrial(duration_s=1, **members), 64, 1000, 0)


SPEEDS = [
    (10_000, 10_000, None, 10_000),
    (10_000, 1_000, None, 1_000),
    (0, 10_000, None, None),
    (10_000, 10_000, 2_500, 2_500),
]


@pytest.mark.parametrize(("left", "right", "configured", "media_mbps"), SPEEDS)
def test_the_links_speed_is_used_where_none_is_configured(
    left: int, right: int, configured: int | None, media_mbps: int | None
) -> None:
    setup = IPV4.model_copy(update={"media_mbps": configured})
    assert with_media(setup, {"left": {"link_mbps": left}, "right": {"link_mbps": right}}).media_mbps == media_mbps


def test_the_request_to_open_has_addresses_without_prefix_and_nothing_that_was_not_set() -> None:
    assert open_request(IPV4, 1522) == {
        "left": {"port": "af_packet:tl", "ipv4": "198.18.0.2", "gateway4": "198.18.0.1"},
        "right": {"port": "af_packet:tr", "ipv4": "198.19.0.2", "gateway4": "198.19.0.1"},
        "memory": "auto",
        "max_frame_size": 1522,
    }


def test_the_engine_s_settings_reach_it() -> None:
    settings = {
        "cores": [2, 3],
        "dut_cores": [1],
        "memory": "no_huge_pages",
        "queues": 3,
        "offloads": ["receive_timestamps", "send_at", "rate_limit"],
        "flow_control": "receive",
        "link_timeout_s": 2.5,
    }
    port = {"receive_ring": 64, "mac": "02:00:00:00:00:01", "gateway_mac": "02:00:00:00:00:02"}
    request = open_request(parse({"engine": settings, "left": LEFT4 | port, "right": RIGHT4}, "test"), 9216)
    sent = {key: value for key, value in settings.items() if key != "link_timeout_s"} | {"link_timeout_ms": 2500}
    assert {key: request[key] for key in sent} == sent
    assert {key: request["left"][key] for key in port} == port
    REQUESTS.validate({"id": 1, "method": "open", "params": request})


CONDITIONS = st.builds(
    Usual,
    duration_s=st.floats(0.001, 86_400),
    drain_s=st.floats(0, 3_600),
    directions=st.sampled_from(["both", "forward", "reverse"]),
    foreground=st.integers(0, 10).map(lambda m: Foreground(n=10, m=m)),
    ports=st.sampled_from(FieldMode),
    networks=st.integers(1, 256),
    seed=st.integers(0, 2**53 - 1),
    tx_burst=st.integers(1, 512),
)


@given(
    setup=st.sampled_from([SIIT, SIIT_MIRRORED, IPV4_BOTH, IPV6]),
    conditions=CONDITIONS,
    size=st.integers(84, 9216),
    rate_fps=st.integers(1, 10**9),
    number=st.integers(0, 65535),
)
def test_every_trial_is_a_request_that_the_engine_takes(
    setup: Setup, conditions: Conditions, size: int, rate_fps: int, number: int
) -> None:
    assume(rate_fps * conditions.duration_s <= MAX_FRAMES)
    trial = make_trial(setup, conditions, size, rate_fps, number)
    request = trial.request()
    REQUESTS.validate({"id": 1, "method": "run", "params": request})
    assert Trial.model_validate(request) == trial
    assert {stream.rate_fps for stream in trial.streams().values()} == {rate_fps}
    assert tuple(trial.streams()) == conditions.active()


def test_ports_and_networks_that_the_configuration_lays_down() -> None:
    sources, destinations = {"mode": "increasing", "min": 5000, "max": 6000}, {"mode": "fixed", "min": 9, "max": 9}
    left, right = (
        LEFT4 | {"source_port": sources, "networks": 3},
        RIGHT4 | {"destination_port": destinations, "networks": 256},
    )
    setup = parse({"left": left, "right": right}, "test")
    trial = make_trial(setup, ALL, 64, 1, 0)
    assert trial.forward is not None
    assert trial.reverse is not None
    assert (trial.forward.networks, trial.reverse.networks) == (256, 3)
    assert (trial.forward.source_port, trial.forward.destination_port) == (
        setup.left.source_port,
        destination_ports(FieldMode.RANDOM),
    )
    assert (trial.reverse.source_port, trial.reverse.destination_port) == (
        source_ports(FieldMode.RANDOM),
        setup.right.destination_port,
    )


CHOSEN_TWICE: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"source_port": {"mode": "fixed", "min": 9, "max": 9}}, {"ports": "fixed"}, "ports"),
    ({"networks": 3}, {"networks": 2}, "networks"),
    ({"networks": 3, "varying_address": {"mode": "random", "min": 0, "max": 255}}, {}, "left.networks"),
]


@pytest.mark.parametrize(("side", "conditions", "key"), CHOSEN_TWICE)
def test_what_is_laid_down_is_not_chosen_as_well(side: dict[str, Any], conditions: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make_trial(parse({"left": LEFT4 | side, "right": RIGHT4}, "test"), Usual(**conditions), 64, 1, 0)
    assert caught.value.key == key


def test_a_direction_through_a_translator_needs_an_address_to_send_to() -> None:
    one_way = parse({"left": LEFT6, "right": RIGHT4 | {"seen_as": "2001:2:0:1000::2"}}, "test")
    make_trial(one_way, Usual(directions="forward"), 84, 1, 0)
    with pytest.raises(ConfigError, match="is missing: the other side needs an IPv4 address") as caught:
        make_trial(one_way, ALL, 84, 1, 0)
    assert caught.value.key == "left.seen_as"


def test_a_trial_whose_frames_cannot_be_numbered_is_refused() -> None:
    """20.5 hours at 14,880,952 frames/s."""
    make_trial(SIIT, Usual(duration_s=73_887.0), 84, 14_880_952, 0)
    with pytest.raises(ConfigError, match=r"more than a trial can have \(1,099,511,627,776\)") as caught:
        make_trial(SIIT, Usual(duration_s=73_888.0), 84, 14_880_952, 0)
    assert caught.value.key == "duration_s"


def test_what_goes_together_is_checked_once_and_also_where_assertions_are_off(monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[traffic.TrafficKind] = []
    monkeypatch.setattr(traffic.PlainTraffic, "check_kind", lambda self: checked.append(self))
    kind = traffic.of(IPV4, Usual(frame_sizes=(64,)))
    [case] = kind.cases()
    for rate_fps in (1, 1000):
        kind.trial(case, Load.fps(rate_fps), 0)
    assert checked == [kind]
    program = (
        "from dutperf import traffic; from dutperf.setup.conditions import Usual; from dutperf.setup.configuration"
        " import ParameterError, parse\n"
        f"setup = parse({ {'left': LEFT4, 'right': RIGHT4} }, 'test')\n"
        "refused = Usual(frame_sizes=(64,), modifiers='extension-header:hop-by-hop', frame='ip/udp')\n"
        "try: traffic.of(setup, refused).check()\n"
        "except ParameterError as error: print(error.key)"
    )
    run = subprocess.run([sys.executable, "-O", "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout == "modifiers\n"


@pytest.mark.parametrize(
    ("port", "opened"),
    [
        ("eth1", "af_packet:eth1"),
        ("af_packet:eth1", "af_packet:eth1"),
        ("af_xdp:eth1", "af_xdp:eth1"),
        ("memif:/run/x", "memif:/run/x"),
    ],
)
def test_packet_sockets_open_the_ports_that_are_named_by_their_interface_alone(port: str, opened: str) -> None:
    chosen = by_packet_sockets(parse({"left": LEFT4 | {"port": port}, "right": RIGHT4}, "test"))
    assert [side.port for side in chosen.sides().values()] == [opened, "af_packet:tr"]
