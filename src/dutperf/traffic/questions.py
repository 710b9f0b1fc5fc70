# SPDX-License-Identifier: Apache-2.0
"""Questions to a DNS64 server (RFC 8219 section 9): the tester's client asks at the left port, and its name server
answers the DUT at the right one, or another server does. No name is asked for twice, but for those that the DUT is to
have in its cache: a preliminary phase asks for them before each trial."""

from __future__ import annotations

from itertools import product
from typing import Any

from dutperf.model import (
    AAAA_NAMES,
    ANY_LOSS,
    CACHED_NAMES,
    PREAMBLE_AND_GAP,
    TRIAL_NUMBERS,
    AddressNames,
    CachedNames,
    Case,
    Direction,
    Load,
    NameServer,
    Phase,
    Profile,
    Question,
    Questions,
    SourcePorts,
    Spread,
    Stamping,
    Stream,
    Trial,
)
from dutperf.setup.conditions import Conditions
from dutperf.setup.configuration import ConfigError, ParameterError, Setup
from dutperf.setup.dns64 import Dns64Setup
from dutperf.setup.questions import WithQuestions
from dutperf.traffic.base import TrafficKind
from dutperf.traffic.connections import LONGEST_S

LONGEST_ANSWER = 600
"""Bytes of a frame with FCS: an answer of 512 bytes (RFC 1035 4.2.1) over IPv6."""
_NS = 1_000_000_000
_WITHOUT_EFFECT = ("frame", "tunnel", "varying_address", "networks", "source_port", "destination_port", "vlans")
"""Keys of a side."""


def check(setup: Setup) -> None:
    """Raises ConfigError: it is not of a DNS64 server, or has something without an effect on questions."""
    if setup.dns64 is None:
        raise ConfigError(
            "is missing: give the address that is asked (server), and the prefix if it is not 64:ff9b::/96", "dns64"
        )
    if setup.streams:
        raise ConfigError("do not go with questions to a DNS64 server: leave them out", "streams")
    for name, side in setup.sides().items():
        for member in _WITHOUT_EFFECT:
            if getattr(side, member) is not None:
                raise ConfigError("has no effect on questions to a DNS64 server: leave it out", f"{name}.{member}")


class QuestionTraffic(TrafficKind):
    """Queries for AAAA, each with an answer in time."""

    def __init__(self, setup: Setup, conditions: Conditions) -> None:
        super().__init__(setup, conditions)
        assert isinstance(conditions, WithQuestions)
        self._asked: WithQuestions = conditions

    def check(self) -> None:
        for case in self.cases():
            self.trial(case, Load.fps(1), 0)

    def sized(self) -> Conditions:
        """Queries have one size."""
        return self.given

    def cases(self) -> tuple[Case, ...]:
        """Every share of cached names with every share of names with an AAAA record."""
        return tuple(
            Case({CACHED_NAMES: cached, AAAA_NAMES: with_aaaa})
            for cached, with_aaaa in product(self._asked.cached, self._asked.with_aaaa)
        )

    def maximum_fps(self, case: Case) -> int | None:
        """What the client's media carries, in queries/s."""
        size, mbps = self._questions(case, 0, None).frame_size, self.setup.media_mbps
        return None if mbps is None else mbps * 1_000_000 // (8 * (size + PREAMBLE_AND_GAP))

    def longest_frame(self, case: Case) -> int:
        return LONGEST_ANSWER

    def own_rates(self, case: Case) -> Profile | None:
        return None

    def trial(self, case: Case, load: Load, number: int) -> Trial:
        """The trial with ``load`` queries/s. Raises ConfigError: the configuration has no DNS64 server, or something
        that would have no effect."""
        self.check_once()
        preliminary = self._filling_the_cache(case, number) if case[CACHED_NAMES] else ()
        cached = None
        if preliminary:
            spread = Spread.percent(case[CACHED_NAMES])
            cached = CachedNames(
                **dict(spread), names=self._asked.cached_names, **{"trial": number} if self._is_own else {"first": 0}
            )
        measuring = (number + len(preliminary)) % TRIAL_NUMBERS
        return Trial(
            trial=measuring,
            duration_ns=round(self.conditions.duration_s * _NS),
            preliminary=preliminary,
            rest_ns=None if preliminary else self._rest_ns,
            **self._members(case, measuring, load.value, cached),
        )

    def stream(self, direction: Direction, frame_size: int, rate_fps: int) -> Stream:
        """Queries for names that are not cached and have no AAAA record."""
        return Stream(rate_fps=rate_fps, questions=self._questions(Case({CACHED_NAMES: 0, AAAA_NAMES: 0}), 0, None))

    def active(self) -> tuple[Direction, ...]:
        return (Direction.FORWARD,)

    def check_once(self) -> None:
        """The configuration is one of a DNS64 server, and has nothing without an effect."""
        check(self.setup)
        if self.setup.other_name_server and any(self._asked.with_aaaa):
            raise ParameterError(
                "what AAAA records another name server has is not known: `with_aaaa` is for the tester's own (without"
                " dns64.addresses)",
                "with_aaaa",
            )

    def _filling_the_cache(self, case: Case, number: int) -> tuple[Phase, ...]:
        """Asks once for each name that the DUT is to have in its cache. Names that are not answered become cached at
        their first query in the trial, so any loss is tolerated."""
        try:
            rate = self._asked.preliminary_rate.offered_fps(self.maximum_fps(case))
        except ValueError as error:
            raise ParameterError(str(error), "preliminary_rate") from None
        time_ns = -(-self._asked.cached_names * _NS // rate)
        if time_ns > LONGEST_S * _NS:
            text = f"{self._asked.cached_names:,} names take longer than a day at {rate:,} in a second"
            raise ParameterError(text, "preliminary_rate")
        phase = Phase(
            trial=number % TRIAL_NUMBERS,
            rest_ns=self._rest_ns,
            duration_ns=time_ns,
            question=Question(tolerated_loss=ANY_LOSS),
            **self._members(case, number % TRIAL_NUMBERS, rate, None),
        )
        return (phase,)

    def _members(self, case: Case, number: int, rate_fps: int, cached: CachedNames | None) -> dict[str, Any]:
        """Of each phase."""
        chosen = self.conditions
        return {
            "seed": chosen.seed,
            "burst": chosen.tx_burst,
            "drain_ns": round(max(chosen.drain_s, self._asked.timeout_s) * _NS),
            "stamping": Stamping.EVERY,
            "frame_timeout_ns": round(self._asked.timeout_s * _NS),
            "forward": Stream(rate_fps=rate_fps, questions=self._questions(case, number, cached)),
            "server": NameServer(zone=self._dns64.zone) if self._is_own else None,
        }

    def _questions(self, case: Case, number: int, cached: CachedNames | None) -> Questions:
        client, dut = self.setup.sides()["left"], self._dns64
        assert client.ipv6 is not None, "the configuration is checked"
        return Questions(
            source=client.ipv6.ip,
            destination=dut.server,
            zone=dut.zone,
            prefix=dut.prefix,
            aaaa=Spread.percent(case[AAAA_NAMES]),
            cached=cached,
            **self._of_addresses(number),
        )

    def _of_addresses(self, number: int) -> dict[str, Any]:
        """Members of questions to a DUT that asks another name server."""
        network = self._dns64.addresses
        if network is None:
            return {}
        return {"addresses": AddressNames(network=network), "source_ports": SourcePorts.of_trial(number)}

    @property
    def _is_own(self) -> bool:
        """Whether the DUT asks the tester's name server."""
        return not self.setup.other_name_server

    @property
    def _dns64(self) -> Dns64Setup:
        self.check_once()
        assert self.setup.dns64 is not None
        return self.setup.dns64
