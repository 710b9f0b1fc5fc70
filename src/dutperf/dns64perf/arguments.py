# SPDX-License-Identifier: Apache-2.0
"""The positional parameters: ``SERVER PORT SUBNET REQUESTS BURST THREADS DELAY TIMEOUT``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Address
from typing import Any

from dutperf.errors import DutperfError
from dutperf.traffic.connections import LONGEST_S

NAMES = ("SERVER", "PORT", "SUBNET", "REQUESTS", "BURST", "THREADS", "DELAY-NS", "TIMEOUT-S")
NS = 1_000_000_000
MOST_REQUESTS = 1 << 25
"""Of which the engine keeps the times (protocol/README.md)."""
LONGEST_TIMEOUT_S = 60.0


class ArgumentError(DutperfError):
    """An argument, or the configuration file, cannot be used."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"{name}: {message}" if name else message)


@dataclass(frozen=True)
class QueryTest:
    """The checked parameters."""

    server: IPv6Address
    port: int
    subnet: IPv4Network
    requests: int
    burst: int
    threads: int
    delay_ns: int
    timeout_s: float

    @property
    def slice_size(self) -> int:
        return self.requests // self.threads

    @property
    def exact_qps(self) -> float:
        """Queries/s of all threads."""
        return self.threads * self.burst * NS / self.delay_ns

    def thread_of(self, name: int) -> int:
        """The thread in whose slice the name with this number is."""
        return name // self.slice_size


def parse(words: Sequence[str]) -> QueryTest:
    """The arguments of the command. Raises ArgumentError: a wrong number of arguments, or an invalid one; the message
    names it."""
    if len(words) != len(NAMES):
        raise ArgumentError("arguments", f"there are {len(words)}, not {len(NAMES)}: {' '.join(NAMES)}")
    readers: Sequence[Callable[[str], Any]] = (
        _server,
        _whole(1, 65_535),
        IPv4Network,
        _whole(1, MOST_REQUESTS),
        _whole(1, 1_000_000),
        _whole(1, 1_000_000),
        _whole(1, 3600 * NS),
        _timeout,
    )
    given = QueryTest(*(_read(name, read, word) for name, read, word in zip(NAMES, readers, words, strict=True)))
    _check(given)
    return given


def _read(name: str, read: Callable[[str], Any], word: str) -> Any:
    try:
        return read(word)
    except ValueError as error:
        raise ArgumentError(name, str(error)) from None


def _server(word: str) -> IPv6Address:
    try:
        return IPv6Address(word)
    except ValueError:
        raise ValueError(f"should be an IPv6 address, not '{word}'") from None


def _whole(low: int, high: int) -> Callable[[str], int]:
    def read(word: str) -> int:
        if not (word.isascii() and word.isdigit()) or not low <= int(word) <= high:
            raise ValueError(f"should be a whole number from {low:,} to {high:,}, not '{word}'")
        return int(word)

    return read


def _timeout(word: str) -> float:
    message = f"should be a number of seconds above 0, up to {LONGEST_TIMEOUT_S:g}, not '{word}'"
    try:
        timeout_s = float(word)
    except ValueError:
        raise ValueError(message) from None
    if not 1 / NS <= timeout_s <= LONGEST_TIMEOUT_S:
        raise ValueError(message)
    return timeout_s


def _check(given: QueryTest) -> None:
    if given.requests % (given.threads * given.burst):
        raise ArgumentError(
            "REQUESTS",
            f"should be a multiple of THREADS × BURST, {given.threads * given.burst:,}, not {given.requests:,}",
        )
    if given.requests > given.subnet.num_addresses:
        raise ArgumentError(
            "REQUESTS", f"{given.requests:,} are more than SUBNET has addresses, {given.subnet.num_addresses:,}"
        )
    if not 1 <= round(given.exact_qps) <= NS:
        raise ArgumentError("DELAY-NS", f"makes a rate of {given.exact_qps:g} queries/s: 1 to {NS:,} are possible")
    if given.requests > LONGEST_S * round(given.exact_qps):
        raise ArgumentError("REQUESTS", f"{given.requests:,} take longer than a day at {given.exact_qps:g} in a second")
