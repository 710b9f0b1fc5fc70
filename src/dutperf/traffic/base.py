# SPDX-License-Identifier: Apache-2.0
"""What is common to all kinds of traffic: frame sizes, rates and their pattern, the phases of a trial (RFC 8219 4.1
and 5), and what no kind allows.

Sizes are bytes including the FCS. With any IPv6 traffic on either side the frame size is that of IPv6
frames. IPv4 frames are then 20 bytes shorter, so that both sides of a translator carry the same
payload.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, Protocol

from dutperf.model import (
    ANY_LOSS,
    DIRECTION_RATES,
    FRAME_SIZE,
    FRAME_SIZE_IPV4,
    IPV6_HEADER_EXCESS,
    MAX_FRAME_SIZE,
    MIN_FRAME_SIZE,
    PREAMBLE_AND_GAP,
    SIZE_MIX,
    TRIAL_NUMBERS,
    Bursts,
    Case,
    Direction,
    Joining,
    Load,
    Pattern,
    Phase,
    Profile,
    Question,
    Stamping,
    Stream,
    Trial,
    VlanTags,
    members_of,
    of_test_frames,
)
from dutperf.model.frame_size import ETHERNET_OVERHEAD
from dutperf.setup import steady_pattern
from dutperf.setup.changing_rate import ChangingRate, is_changing
from dutperf.setup.conditions import FRAME_SIZE_SERIES, AllConditions, Conditions
from dutperf.setup.configuration import ConfigError, LinkBetween, ParameterError, Setup, Side, missing_seen_as
from dutperf.setup.pacing import fill_of
from dutperf.setup.size_mix import SizeMix
from dutperf.traffic import additional, addresses, combinations, sizes
from dutperf.traffic.ptp_messages import with_ptp

MAX_FRAMES = 2**40
"""Per direction of a trial: sequence numbers have 40 bits."""


class OtherStreams(Protocol):
    """Streams with rates of their own, beside those that are measured. Without any, they are :class:`NoOthers`."""

    def streams(self, frame_size: int) -> dict[Direction, Stream]:
        """All of them, while frames of ``frame_size`` bytes are measured. Raises ConfigError: they are not possible."""
        ...

    def left_of_media(self, path: Direction, frame_size: int) -> float:
        """Which part of the media (0-1) of its sending port they leave a path, while most of them send. Raises
        ConfigError: they are not possible, or leave nothing."""
        ...

    def check_media(self, frame_size: int) -> None:
        """Check that the media can carry them, where nothing else is sent. Raises ConfigError: it cannot, or they are
        not possible."""
        ...


class NoOthers:
    """No such streams."""

    def streams(self, frame_size: int) -> dict[Direction, Stream]:
        return {}

    def left_of_media(self, path: Direction, frame_size: int) -> float:
        return 1.0

    def check_media(self, frame_size: int) -> None:
        """Nothing."""


class TrafficKind(ABC):
    """The traffic of a test setup under ``conditions``, beside ``others``."""

    def __init__(self, setup: Setup, conditions: Conditions, others: OtherStreams | None = None) -> None:
        self.setup = setup
        self.given = conditions
        self.conditions: AllConditions = conditions.every
        self.others = others or NoOthers()
        self._is_checked = False

    # --- what a kind is ---------------------------------------------------------------------------

    @abstractmethod
    def stream(self, direction: Direction, frame_size: int, rate_fps: int) -> Stream:
        """What one direction sends. Raises ConfigError: headers or addresses that are not possible."""

    def check_kind(self) -> None:  # noqa: B027 (most need nothing)
        """Check what this kind alone needs. Raises ConfigError: it is in the setup; ParameterError: in the
        conditions."""

    def smallest_sizes(self) -> list[int]:
        """Sizes in bytes below which its headers have no room."""
        return []

    def learns_destination(self, direction: Direction) -> bool:
        """Whether frames of a direction go to where others came from."""
        return False

    def phases_before(self, members: dict[str, Any], frame_size: int, number: int) -> tuple[Phase, ...]:
        """The preliminary phases of the trial with these ``members``, from ``number`` on."""
        return self.warm_up(members, number, self._rest_ns)

    def warm_up(self, members: dict[str, Any], number: int, rest_ns: int | None) -> tuple[Phase, ...]:
        """The phase that sends the trial's own traffic before it, where one is wanted. It has no drain, so that the
        traffic hardly pauses, and any loss is tolerated."""
        if not self.conditions.warm_up_s:
            return ()
        others = members["other_streams"] and {one: each.throughout() for one, each in members["other_streams"].items()}
        phase = Phase(
            trial=number % TRIAL_NUMBERS,
            rest_ns=rest_ns,
            duration_ns=round(self.conditions.warm_up_s * 1e9),
            drain_ns=0,
            question=Question(tolerated_loss=ANY_LOSS),
            **members | {"other_streams": others},
        )
        return (phase,)

    def after_phases(self, preliminary: tuple[Phase, ...]) -> dict[str, Any]:
        """Members of a trial behind its preliminary phases: the rest before it."""
        return {"rest_ns": None if preliminary else self._rest_ns}

    # --- common to all ----------------------------------------------------------------------------

    def check(self) -> None:
        """Check that every frame size of the conditions gives a trial. Rates within the pattern are not
        checked: they may be shares of a link speed that is not known yet."""
        steady = {"burst_rate": None} | ({"pattern": "constant"} if is_changing(self.conditions.pattern) else {})
        plain = {name: value for name, value in steady.items() if name in type(self.given).model_fields}
        steadily = type(self)(self.setup, self.given.model_copy(update=plain), self.others)
        least = Load.fps(self.conditions.of_directions.least_fps)
        for case in steadily.cases():
            addresses.check(self.setup, steadily.trial(case, least, 0), self.networks)
            self._check_between(case)

    def _check_between(self, case: Case) -> None:
        """A frame that is too long for a link between DUTs is lost or fragmented there at every rate (RFC 8219 5.1)."""
        frame_size = max(sizes.longest_of(self.conditions, case[FRAME_SIZE]), self.setup.longest_of_streams)
        for number, link in enumerate(self.setup.between):
            need = self._size_between(frame_size, link) - ETHERNET_OVERHEAD
            if link.mtu is None or need <= link.mtu:
                continue
            near, far = (dut.name for dut in self.setup.duts()[number : number + 2])
            raise ParameterError(
                f"frames of {frame_size:,} bytes need an MTU of {need:,} between {near} and {far}, which have"
                f" {link.mtu:,} (between.mtu): they would drop or fragment them; frames of"
                f" {frame_size - need + link.mtu:,} bytes fit",
                "frame_sizes",
            )

    def sized(self) -> Conditions:
        """The conditions with frame sizes. If none are given: those of the series, else the smallest that
        the traffic of this test setup can have. Sizes of a series that this traffic cannot have are one: the smallest.
        """
        chosen = self.conditions
        if chosen.sizes_are_given:
            return self.given
        if chosen.size_mix is not None:
            mean = SizeMix.parse(chosen.size_mix).at_least(self.smallest_frame_size).mean
            return self.given.model_copy(update={"frame_sizes": (mean,)})
        series = () if chosen.series is None else FRAME_SIZE_SERIES[chosen.series]
        sizes = tuple(dict.fromkeys(max(size, self.smallest_frame_size) for size in series))
        return self.given.model_copy(update={"frame_sizes": sizes or (self.smallest_frame_size,)})

    def cases(self) -> tuple[Case, ...]:
        """Each frame size of the conditions, which are :meth:`sized`, with what is the same for all."""
        mix = {} if self.conditions.size_mix is None else {SIZE_MIX: self.conditions.size_mix}
        ratio = self.conditions.direction_rates
        rates = {} if ratio is None else {DIRECTION_RATES: ratio}
        return tuple(
            Case({FRAME_SIZE: size, FRAME_SIZE_IPV4: self.size_ipv4(size), **mix, **rates})
            for size in self.conditions.frame_sizes
        )

    def maximum_fps(self, case: Case) -> int | None:
        """The media's maximum frame rate in frames/s of the faster direction, for the larger frame (RFC 8219 appendix
        A), of a mix for its exact mean, and on the slowest link; None where no speed is known. Beside streams with
        rates of their own it is less, paths from one port share it, and the slower direction needs only its part of it.
        Raises ConfigError: they leave nothing, or are not possible."""
        return self._maximum_fps(case[FRAME_SIZE])

    def path_maximum_fps(self, case: Case) -> int | None:
        """The same of a path that has the line for itself."""
        return self._media_fps(case[FRAME_SIZE])

    def _maximum_fps(self, frame_size: int) -> int | None:
        each, active = self.conditions.of_directions, self.active()
        paths = Counter(path.sending_port for path in active)
        limits = [
            media_fps
            * min(1.0, self.others.left_of_media(path, frame_size) / each.share(path) / paths[path.sending_port])
            for path in active
            if (media_fps := self._path_fps(path, frame_size)) is not None
        ]
        return int(min(limits)) if limits else None

    def longest_frame(self, case: Case) -> int:
        """In bytes, of all frames of a case."""
        return sizes.longest_of(self.conditions, case[FRAME_SIZE]) + self.setup.tunnel_overhead

    def own_rates(self, case: Case) -> Profile | None:
        """The rates of a traffic pattern that has rates of its own; None for any other. Raises ParameterError: rates
        that are not possible."""
        return self._profile(case[FRAME_SIZE])

    def trial(self, case: Case, load: Load, number: int) -> Trial:
        """The trial with ``load`` frames/s in each active direction; a slower one has its share of it. Its phases have
        the numbers from ``number`` (0-65535) on. Raises ConfigError: a frame size that is impossible for this traffic,
        or addresses that the conditions need and the configuration does not have."""
        return self._trial(case[FRAME_SIZE], number, members_of(self.streams(case[FRAME_SIZE], load.value)))

    def trial_of_others(self, case: Case, number: int) -> Trial:
        """The trial of the streams with rates of their own alone, without any frames beside them. Raises ConfigError:
        see :meth:`trial`; or a condition is about other frames."""
        combinations.check_alone(self.setup, self.conditions)
        self.others.check_media(case[FRAME_SIZE])
        return self._trial(case[FRAME_SIZE], number, {})

    def _trial(self, frame_size: int, number: int, by_path: dict[str, Any]) -> Trial:
        """The trial with these streams, and with those of rates of their own."""
        chosen = self.conditions
        pacing = fill_of(chosen.pacing)
        members: dict[str, Any] = {"seed": chosen.seed, "burst": chosen.tx_burst, "pacing": pacing, **by_path}
        members["other_streams"] = self.others.streams(frame_size) or None
        preliminary = self.phases_before(members, frame_size, number)
        trial = Trial(
            trial=(number + len(preliminary)) % TRIAL_NUMBERS,
            duration_ns=round((chosen.duration_s + chosen.joining_s) * 1e9),
            drain_ns=round(chosen.drain_s * 1e9),
            preliminary=preliminary,
            **stamps(chosen),
            **members,
            **self.after_phases(preliminary),
        )
        return trial if self.setup.tunnel_overhead else with_ptp(trial)

    def streams(self, frame_size: int, rate_fps: int) -> dict[Direction, Stream]:
        """What each active direction sends."""
        self._check_size(frame_size)
        self.check_once()
        self._check_numbers(rate_fps)
        each = self.conditions.of_directions
        if rate_fps < each.least_fps:
            raise ParameterError(
                f"{each} needs {each.least_fps:,} frames/s at least, so that the slower direction has one: {rate_fps:,}"
                " are too few",
                "direction_rates",
            )
        return {way: self.stream(way, frame_size, each.fps(way, rate_fps)) for way in self.active()}

    def active(self) -> tuple[Direction, ...]:
        return self.setup.active(self.conditions.active())

    @cached_property
    def has_ipv6(self) -> bool:
        """Whether either side of the DUT has IPv6 frames, so that frame sizes are those of IPv6 frames."""
        sides = self.setup.sides().values()
        return self.conditions.foreground.native_percent > 0 or any(side.version == 6 for side in sides)

    def size_ipv4(self, frame_size: int) -> int:
        """The size in bytes of the IPv4 frames in a trial of ``frame_size``."""
        return frame_size - IPV6_HEADER_EXCESS if self.has_ipv6 else frame_size

    @cached_property
    def smallest_frame_size(self) -> int:
        """The smallest size in bytes that this traffic can have (RFC 8219 5.1.1). Raises ConfigError: headers that are
        not possible."""
        return max([MIN_FRAME_SIZE + (IPV6_HEADER_EXCESS if self.has_ipv6 else 0), *self.smallest_sizes()])

    def rhythm(
        self, direction: Direction, frame_size: int, rate_fps: int, vlan_tags: Sequence[VlanTags] = ()
    ) -> dict[str, Any]:
        """Members of a stream: the rate of its test frames, their pattern, and the frames that come between
        them, which belong to the rate. ``vlan_tags``: of the test frames."""
        between = additional.frames_of(self.setup, self.conditions, direction, self.size_ipv4(frame_size), vlan_tags)
        test_fps = of_test_frames(between, rate_fps)
        pattern = self._pattern(frame_size, test_fps)
        if isinstance(pattern, Profile):
            test_fps = pattern.mean_fps  # as it is rounded
        return {"rate_fps": test_fps, "pattern": pattern, "additional": between}

    def networks(self, receiver: Side) -> int:
        """Destination networks behind a side."""
        return self.conditions.networks if receiver.networks is None else receiver.networks

    def key_of(self, side: Side) -> str:
        """Where the configuration has a side."""
        return next(self.setup.key_of(name) for name, one in self.setup.sides().items() if one is side)

    def share_of_media(self, option: str, frame_size: int) -> int:
        """A rate of the conditions in frames/s. Raises ParameterError: it is a percentage of an unknown maximum."""
        try:
            return int(getattr(self.conditions, option).offered_fps(self._media_fps(frame_size)))
        except ValueError as error:
            raise ParameterError(str(error), option) from None

    def _media_fps(self, frame_size: int) -> int | None:
        each = (self._path_fps(path, frame_size) for path in self.active())
        return min((fps for fps in each if fps is not None), default=None)

    def _path_fps(self, path: Direction, frame_size: int) -> int | None:
        """The media's maximum of a path's frames on the slowest link, if it has the line for itself."""
        weights = self.weights_of_sizes(path, frame_size)
        links: list[tuple[int | None, Callable[[int], int]]] = [
            (self.setup.media_mbps, lambda size: size + self.setup.tunnel_overhead)
        ]
        links += [
            (link.mbps or self.setup.media_mbps, partial(self._size_between, link=link)) for link in self.setup.between
        ]
        rates = (
            mbps * 1_000_000 // (8 * (sum(weights[size] * on(size) for size in weights) + PREAMBLE_AND_GAP))
            for mbps, on in links
            if mbps is not None
        )
        return min(map(int, rates), default=None)

    def weights_of_sizes(self, path: Direction, frame_size: int) -> Mapping[int, Fraction]:
        """The larger frames of a path in a case, by size; each with its share of them."""
        del path
        order: Sequence[int] = (frame_size,)
        if self.conditions.size_mix is not None:
            order = SizeMix.parse(self.conditions.size_mix).at_least(self.smallest_frame_size).order
        return {size: Fraction(count, len(order)) for size, count in Counter(order).items()}

    def _size_between(self, frame_size: int, link: LinkBetween) -> int:
        """Of the larger frame on a link between DUTs: a test frame with its overhead, or one of native IPv6."""
        only_ipv4 = all(side.version == 4 for side in self.setup.sides().values())
        test_frame = self.size_ipv4(frame_size) if only_ipv4 else frame_size
        native = frame_size if self.conditions.foreground.native_percent else 0
        return max(test_frame + link.overhead, native, MIN_FRAME_SIZE)

    @property
    def _rest_ns(self) -> int | None:
        return round(self.conditions.learning_rest_s * 1e9) or None

    def _profile(self, frame_size: int) -> Profile | None:
        pattern = self.conditions.pattern
        if not is_changing(pattern):
            return None
        changing, duration_ns = ChangingRate.parse(pattern), round(self.conditions.duration_s * 1e9)
        try:
            return changing.profile(duration_ns, self._maximum_fps(frame_size))
        except ValueError as error:
            raise ParameterError(str(error), "pattern") from None

    def _pattern(self, frame_size: int, rate_fps: int) -> Pattern | None:
        if (own_rates := self._profile(frame_size)) is not None:
            return own_rates.scaled_to(rate_fps)
        if (flows := self.conditions.flows) is not None and self.conditions.joining_s:
            return Joining(flows=flows, apart_ns=round(self.conditions.flows_apart_s * 1e9))
        pattern = steady_pattern.parsed(self.conditions.pattern)
        if not isinstance(pattern, Bursts) or self.conditions.burst_rate is None:
            return pattern
        within_fps = self.share_of_media("burst_rate", frame_size)
        if within_fps < rate_fps:
            raise ParameterError(
                f"{within_fps:,} frames/s within a burst are less than the mean rate, {rate_fps:,} frames/s",
                "burst_rate",
            )
        return pattern.model_copy(update={"within_fps": within_fps})

    # --- what no kind allows ----------------------------------------------------------------------

    def check_once(self) -> None:
        """Nothing of it depends on the rates and sizes of the trials."""
        if self._is_checked:
            return
        combinations.check(self.setup, self.conditions)
        self._check_translated()
        self._check_given_once()
        self._check_background()
        self.check_kind()
        self._is_checked = True

    def _check_size(self, frame_size: int) -> None:
        smallest = self.smallest_frame_size
        if not smallest <= frame_size <= MAX_FRAME_SIZE:
            kind = "IPv6" if self.has_ipv6 else "IPv4"
            raise ParameterError(
                f"{frame_size} bytes are impossible: {kind} traffic has frames of {smallest} to {MAX_FRAME_SIZE}",
                "frame_sizes",
            )

    def _check_numbers(self, rate_fps: int) -> None:
        """Each frame has its own sequence number (protocol/README.md): they last for 20 hours at 14.88 million
        frames/s."""
        frames = rate_fps * (self.conditions.duration_s + self.conditions.joining_s)
        if frames > MAX_FRAMES:
            raise ParameterError(
                f"{frames:,.0f} frames per direction are more than a trial can have ({MAX_FRAMES:,}): choose a shorter"
                " duration",
                "duration_s",
            )

    def _check_translated(self) -> None:
        """Each path through a translator needs a destination address."""
        for direction in self.active():
            sender, receiver = self.setup.ends(direction)
            if self.learns_destination(direction):
                continue
            if sender.version != receiver.version and receiver.seen_as is None:
                raise ConfigError(missing_seen_as(sender), f"{self.key_of(receiver)}.seen_as")

    def _check_given_once(self) -> None:
        """Ports and networks in the configuration take precedence: a condition that chose others would have no
        effect."""
        chosen = self.conditions
        for option, given, members in (
            ("ports", f"{chosen.ports} ports", ("source_port", "destination_port")),
            ("networks", f"{chosen.networks} networks", ("networks",)),
        ):
            if getattr(chosen, option) == AllConditions.model_fields[option].default:
                continue
            for name, side in self.setup.sides().items():
                for member in members:
                    if getattr(side, member) is not None:
                        key = f"{self.setup.key_of(name)}.{member}"
                        raise ParameterError(f"{given} are not possible: the configuration sets them in {key}", option)

    def _check_background(self) -> None:
        """Background traffic needs IPv6 on both sides, whatever the foreground is."""
        if self.conditions.foreground.native_percent == 0:
            return
        need = f"`foreground` {self.conditions.foreground.text()} sends native IPv6 in the background"
        for name, side in self.setup.sides().items():
            key = self.setup.key_of(name)
            if side.ipv6 is None:
                raise ConfigError(f"is missing: {need}", f"{key}.ipv6")
            if side.ipv6.ip.is_link_local and side.has_gateway:
                raise ConfigError(f"is a link-local address, which no router forwards: {need}", f"{key}.ipv6")
            if side.has_gateway and side.gateway_mac is None and side.gateway6 is None:
                raise ConfigError(f"is missing: {need}", f"{key}.gateway6")


def stamps(conditions: Conditions) -> dict[str, Any]:
    """Members of a trial about time stamps: who makes them, and with a frame timeout that every frame has one."""
    every = AllConditions.of(conditions)
    by = {} if every.stamped_by is None else {"stamps": every.stamped_by}
    if every.frame_timeout_ms is None:
        return by
    return by | {"stamping": Stamping.EVERY, "frame_timeout_ns": round(every.frame_timeout_ms * 1e6)}
