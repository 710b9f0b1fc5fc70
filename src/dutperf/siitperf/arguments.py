# SPDX-License-Identifier: Apache-2.0
"""The positional parameters of the commands: whole numbers, their ranges, and checks of several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from dutperf.model import Opening
from dutperf.siitperf import stateful
from dutperf.siitperf.configuration import InputError, Settings, integer

_LARGEST = 2**32 - 1
_FPS = 1_000_000_000


@dataclass(frozen=True)
class Parameter:
    """One positional parameter; both ends of its range are included."""

    name: str
    low: int
    high: int


ALL_IPV4_EXCESS = 20
"""SIZE is that of IPv6 frames also if all traffic is IPv4, so it may be larger by the difference to IPv4
frames."""
LONGEST = 1518
COMMON = (
    Parameter("SIZE", 84, LONGEST + ALL_IPV4_EXCESS),
    Parameter("RATE", 1, _FPS),
    Parameter("DURATION", 1, 3600),
    Parameter("TIMEOUT", 0, 60_000),
    Parameter("n", 2, 1_000_000),
    Parameter("m", 0, 1_000_000),
)
STATEFUL = (
    Parameter("N", 1, _LARGEST),
    Parameter("M", 1, _LARGEST),
    Parameter("R", 1, _FPS),
    Parameter("T", 1, 2000),
    Parameter("D", 1, 100_000_000),
)
LATENCY = (Parameter("DELAY", 0, 3600), Parameter("TIMESTAMPS", 1, 50_000))
PDV = (Parameter("FRAME_TIMEOUT", 0, 3_600_000),)

Arguments = Mapping[str, int]
"""Checked parameters by name: SIZE in bytes, RATE and R in frames/s, DURATION and DELAY in s,
TIMEOUT, FRAME_TIMEOUT, T and D in ms."""


def parse(words: Sequence[str], own: Sequence[Parameter], settings: Settings) -> Arguments:
    """The arguments of a command with its ``own`` parameters after the common ones. Raises InputError: a wrong number
    of arguments, or an invalid one; the message names it."""
    parameters = (*COMMON, *(STATEFUL if settings.stateful else ()), *own)
    if len(words) != len(parameters):
        names = " ".join(parameter.name for parameter in parameters)
        raise InputError(
            "arguments", f"there are {len(words)}, not {len(parameters)}: {names} (Stateful is {settings['Stateful']})"
        )
    arguments = {parameter.name: _read(parameter, word) for parameter, word in zip(parameters, words, strict=True)}
    checks = [_check_mix, _check_size, _check_latency, _check_frame_timeout]
    for check in (*checks, *(_STATEFUL_CHECKS if settings.stateful else ())):
        check(arguments, settings)
    return MappingProxyType(arguments)


def _read(parameter: Parameter, word: str) -> int:
    try:
        return integer(parameter.low, parameter.high)(word)
    except ValueError as error:
        raise InputError(parameter.name, str(error)) from None


def has_background(arguments: Arguments) -> bool:
    """Whether some frames are background traffic, which is IPv6."""
    return arguments["m"] < arguments["n"]


def all_ipv4(arguments: Arguments, settings: Settings) -> bool:
    """Whether no frame on either side is IPv6."""
    return not has_background(arguments) and settings["IP-L-Vers"] == settings["IP-R-Vers"] == 4


def _check_mix(arguments: Arguments, settings: Settings) -> None:
    if arguments["m"] > arguments["n"]:
        raise InputError("m", f"should be at most n, {arguments['n']}, not {arguments['m']}")
    if has_background(arguments):
        for side in ("L", "R"):
            settings.required(
                f"IPv6-{side}-Real", f"n = {arguments['n']} and m = {arguments['m']} send IPv6 in the background"
            )


def _check_size(arguments: Arguments, settings: Settings) -> None:
    if arguments["SIZE"] > LONGEST and not all_ipv4(arguments, settings):
        raise InputError("SIZE", f"should be at most {LONGEST}, not {arguments['SIZE']}: not all traffic is IPv4")


def _check_latency(arguments: Arguments, _settings: Settings) -> None:
    if "DELAY" not in arguments:
        return
    if arguments["DELAY"] >= arguments["DURATION"]:
        raise InputError("DELAY", f"should be less than DURATION, {arguments['DURATION']}, not {arguments['DELAY']}")
    frames = arguments["RATE"] * (arguments["DURATION"] - arguments["DELAY"])
    if arguments["TIMESTAMPS"] > frames:
        raise InputError(
            "TIMESTAMPS", f"should be at most {frames}, the frames sent after DELAY, not {arguments['TIMESTAMPS']}"
        )


def _check_frame_timeout(arguments: Arguments, _settings: Settings) -> None:
    whole_ms = 1000 * arguments["DURATION"] + arguments["TIMEOUT"]
    if arguments.get("FRAME_TIMEOUT", 0) >= whole_ms:
        raise InputError(
            "FRAME_TIMEOUT",
            f"should be less than 1000 * DURATION + TIMEOUT, {whole_ms}, not {arguments['FRAME_TIMEOUT']}",
        )


def connections(arguments: Arguments, settings: Settings) -> int:
    """Connections that the frames of the preliminary phase may open."""
    space = stateful.space(settings)
    return arguments["N"] if space.opening is Opening.EACH else space.size


def _check_foreground(arguments: Arguments, _settings: Settings) -> None:
    if has_background(arguments):
        raise InputError(
            "m",
            f"should be n, {arguments['n']}, in stateful tests, not {arguments['m']}: all frames belong to connections,"
            " there is no background traffic",
        )


def _check_entries(arguments: Arguments, settings: Settings) -> None:
    if arguments["M"] > arguments["N"]:
        raise InputError("M", f"should be at most N, {arguments['N']}, not {arguments['M']}")
    if arguments["M"] == 1 and settings["Responder-tuples"]:
        raise InputError("M", f"may be 1 only if Responder-tuples is 0, not {settings['Responder-tuples']}")


def _check_combinations(arguments: Arguments, settings: Settings) -> None:
    space = stateful.space(settings)
    if space.opening is Opening.EACH and arguments["N"] > space.size:
        raise InputError(
            "N", f"should be at most {space.size}, the combinations of ports and addresses, not {arguments['N']}"
        )


def _check_delay(arguments: Arguments, _settings: Settings) -> None:
    if arguments["D"] * arguments["R"] < 1000 * arguments["N"] + arguments["T"] * arguments["R"]:
        raise InputError(
            "D",
            f"should be at least 1000 * N / R + T, {1000 * arguments['N'] / arguments['R'] + arguments['T']:g}, not"
            f" {arguments['D']}",
        )


_STATEFUL_CHECKS = (_check_foreground, _check_entries, _check_combinations, _check_delay)
