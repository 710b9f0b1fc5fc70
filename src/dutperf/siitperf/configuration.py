# SPDX-License-Identifier: Apache-2.0
"""The file ``siitperf.conf``: one ``Key value`` per line, ``#`` begins a comment. It is read and checked
once, here; :data:`KEYS` is the table of all keys.

As in siitperf's manual, the sides are L and R, and the directions Fwd and Rev. What siitperf reads in a
way that may not be meant (words behind a value, a key twice, a short MAC address) is read so too, with a
warning. A key that is given need not be used: only what is used is checked beyond its own form.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import TypeAdapter, ValidationError

from dutperf import errors
from dutperf.errors import DutperfError
from dutperf.model import FieldMode
from dutperf.setup.configuration import Mac
from dutperf.spelling import nearest

FILE = Path("siitperf.conf")
"""In the current directory, as for siitperf."""
SIDES = ("L", "R")
DIRECTIONS = {"Forward": "Fwd", "Reverse": "Rev"}
"""The key that activates a direction, and the prefix of its other keys."""
MODES = (FieldMode.FIXED, FieldMode.INCREASING, FieldMode.DECREASING, FieldMode.RANDOM)
"""Meaning of 0 to 3 for ports and addresses."""


class InputError(DutperfError):
    """An invalid file, argument or variable; the message begins with its name."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"{name}: {message}")
        self.name = name
        self.message = message


@dataclass(frozen=True)
class Key:
    """A key: the function that reads its value (ValueError: invalid), and its default."""

    name: str
    read: Callable[[str], Any]
    default: Any = None


def integer(low: int, high: int | None = None, *, hexadecimal: bool = False) -> Callable[[str], int]:
    """Reads a whole number from ``low`` to ``high``; ``hexadecimal`` allows 0x… too."""

    def read(text: str) -> int:
        prefixed = hexadecimal and text.lower().startswith("0x")
        digits = text[2:] if prefixed else text.removeprefix("-")
        if not (digits.isascii() and digits.isalnum() if prefixed else digits.isascii() and digits.isdigit()):
            raise ValueError(f"should be a whole number, not '{text}'")
        value = int(text, 16 if prefixed else 10)
        if value < low or (high is not None and value > high):
            raise ValueError(
                f"should be {low} to {high}, not {text}" if high is not None else f"should be {low} or more, not {text}"
            )
        return value

    return read


def _version(text: str) -> int:
    if text not in ("4", "6"):
        raise ValueError(f"should be 4 or 6, not '{text}'")
    return int(text)


def _address(version: int) -> Callable[[str], IPv4Address | IPv6Address]:
    def read(text: str) -> IPv4Address | IPv6Address:
        with contextlib.suppress(AddressValueError):
            if "%" not in text:  # Python accepts a scope id (fe80::1%eth0), frames have none
                return IPv4Address(text) if version == 4 else IPv6Address(text)
        raise ValueError(f"'{text}' is not an IPv{version} address")

    return read


def _mac(text: str) -> str:
    """siitperf also reads parts of one digit: ``2:0:0:0:0:1``."""
    try:
        return TypeAdapter(Mac).validate_python(":".join(part.zfill(2) for part in text.split(":")))
    except ValidationError as error:
        reason = errors.first(error)["msg"]
        raise ValueError(f"'{text}' {reason}") from None


_FLAG = integer(0, 1)
_MODE = integer(0, 3)
_PORT = integer(0, 65535)
_BITS16 = integer(0, 0xFFFF, hexadecimal=True)


def _keys_of_side(side: str) -> Iterator[Key]:
    yield Key(f"IP-{side}-Vers", _version, {"L": 6, "R": 4}[side])
    for version in (4, 6):
        yield Key(f"IPv{version}-{side}-Real", _address(version))
        yield Key(f"IPv{version}-{side}-Virt", _address(version))
    yield Key(f"MAC-{side}-Tester", _mac)
    yield Key(f"MAC-{side}-DUT", _mac)
    yield Key(f"Num-{side}-Nets", integer(1, 256), 1)
    yield Key(f"CPU-{side}-Send", integer(0))
    yield Key(f"CPU-{side}-Recv", integer(0))
    yield Key(f"IP-{side}-var", _MODE, 0)
    yield Key(f"IP-{side}-min", _BITS16)
    yield Key(f"IP-{side}-max", _BITS16)
    yield Key(f"IPv4-{side}-offset", integer(1, 2))
    yield Key(f"IPv6-{side}-offset", integer(6, 14))


def _keys_of_direction(name: str, prefix: str) -> Iterator[Key]:
    yield Key(name, _FLAG, 1)
    for field, lowest, highest in (("sport", 1024, 65535), ("dport", 1, 49151)):
        yield Key(f"{prefix}-var-{field}", _MODE, 0)
        yield Key(f"{prefix}-{field}-min", _PORT, lowest)
        yield Key(f"{prefix}-{field}-max", _PORT, highest)


KEYS = {
    key.name: key
    for key in (
        *(key for side in SIDES for key in _keys_of_side(side)),
        *(key for name, prefix in DIRECTIONS.items() for key in _keys_of_direction(name, prefix)),
        Key("Promisc", _FLAG, 1),
        Key("MEM-Channels", integer(1), 1),
        Key("Stateful", integer(0, 2), 0),
        Key("Enumerate-ports", _MODE, 0),
        Key("Enumerate-ips", _MODE, 0),
        Key("Responder-tuples", _MODE, 0),
    )
}
OLDER_NAMES = {"Responder-ports": "Responder-tuples"}
STATEFUL_ONLY = ("Enumerate-ports", "Enumerate-ips", "Responder-tuples")


@dataclass(frozen=True)
class Settings:
    """A checked file: ``settings["IP-L-Vers"]``."""

    given: Mapping[str, Any]
    """Values in the file."""
    remarks: tuple[str, ...] = ()
    """Warnings: sentences about lines that may not mean what they say."""

    def __getitem__(self, key: str) -> Any:
        """A key's value, or its default; None if it has neither."""
        return self.given.get(key, KEYS[key].default)

    def required(self, key: str, purpose: str) -> Any:
        """A key's value, or its default. Raises InputError: it has neither, or a placeholder (``0.0.0.0``, ``::``)."""
        value = self[key]
        if value is None:
            raise InputError(key, f"is missing: {purpose}")
        if isinstance(value, IPv4Address | IPv6Address) and value.is_unspecified:
            raise InputError(key, f"is {value}, which is not the address of a host: {purpose}")
        return value

    @property
    def stateful(self) -> bool:
        return bool(self["Stateful"])

    @property
    def translates(self) -> bool:
        """Whether the DUT translates between IP versions."""
        return bool(self["IP-L-Vers"] != self["IP-R-Vers"])

    @property
    def initiator(self) -> str:
        """The side that opens the connections of a stateful test."""
        return "L" if self["Stateful"] == 1 else "R"

    @property
    def responder(self) -> str:
        """The other side."""
        return "R" if self["Stateful"] == 1 else "L"

    @property
    def initiator_direction(self) -> str:
        """The direction that opens the connections of a stateful test."""
        return "Forward" if self["Stateful"] == 1 else "Reverse"

    def active(self) -> tuple[str, ...]:
        """The directions that send in the test itself."""
        return tuple(name for name in DIRECTIONS if self[name])

    def sending(self) -> tuple[str, ...]:
        """The directions that send in any phase."""
        opens = self.initiator_direction if self.stateful else None
        return tuple(name for name in DIRECTIONS if self[name] or name == opens)

    def virtual(self, side: str) -> str | None:
        """The key of the address to which the other side sends, where it is the translator's for ``side``.
        The Responder of a stateful test learns its destinations."""
        other, direction = ("R", "Reverse") if side == "L" else ("L", "Forward")
        replies = self.stateful and other == self.responder
        used = self.translates and direction in self.sending() and not replies
        return f"IPv{self[f'IP-{other}-Vers']}-{side}-Virt" if used else None

    def has_range(self, direction: str, field: str) -> bool:
        """Whether frames of a direction use the range of their ``sport`` or ``dport``."""
        enumerated = self.stateful and direction == self.initiator_direction and self["Enumerate-ports"]
        return direction in self.sending() and bool(enumerated or self[f"{DIRECTIONS[direction]}-var-{field}"])

    def mode(self, key: str) -> FieldMode:
        """The mode of a key with 0 to 3."""
        return MODES[self[key]]


def load(path: Path = FILE) -> Settings:
    """Read and check the file. Raises InputError: it cannot be read, or has an invalid value; the message names the
    key, or the line's number and text."""
    try:
        text = path.read_bytes().decode(errors="replace")  # read_text ends lines at CR too, siitperf does not
    except OSError as error:
        raise InputError(str(path), f"cannot be read in {Path.cwd()}: {error.strerror}") from None
    return parse(text, str(path))


def parse(text: str, origin: str = str(FILE)) -> Settings:
    """Read and check the text of a file called ``origin``."""
    given: dict[str, Any] = {}
    remarks: list[str] = []
    for number, line in enumerate(text.split("\n"), start=1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        place = f"{origin}, line {number}"
        key, value = _read(words, place, line.strip())
        remarks += [f"{place}: {what}." for what in _doubts(key, words, value, given)]
        given[key.name] = value
    settings = Settings(MappingProxyType(given), tuple(remarks))
    _check(settings)
    return settings


def _read(words: list[str], place: str, line: str) -> tuple[Key, Any]:
    key = KEYS.get(OLDER_NAMES.get(words[0], words[0]))
    if key is None or len(words) < 2:
        near = nearest(words[0], KEYS) if key is None else None
        raise InputError(place, f"cannot be read: '{line}'" + (f"; did you mean {near}?" if near else ""))
    try:
        return key, key.read(words[1])
    except ValueError as error:
        raise InputError(words[0], f"{error} ({place})") from None


def _doubts(key: Key, words: list[str], value: Any, former: Mapping[str, Any]) -> Iterator[str]:
    """What siitperf reads and its user may not mean. The words themselves are not quoted: scripts look for
    some in warnings."""
    if len(words) > 2:
        yield f"{words[0]} has words behind its value, without #; they are ignored, as by siitperf"
    if former.get(key.name, value) != value:
        yield f"{words[0]} is given twice, with different values; the last one counts, as in siitperf"
    if key.name.startswith("MAC-") and len(words[1]) < len(value):
        yield f"{words[0]} is short of digits; it is read as {value}, as by siitperf"


# --- checks of several keys -----------------------------------------------------------------------


def _check(settings: Settings) -> None:
    if not settings.active() and not settings.stateful:
        raise InputError("Forward", "is 0, and Reverse as well: one of them has to be 1")
    for direction, prefix in DIRECTIONS.items():
        for field in ("sport", "dport"):
            if settings.has_range(direction, field):
                _check_range(settings, f"{prefix}-{field}")
    for side in SIDES:
        _check_varying(settings, side)
    _check_addresses(settings)


def _check_range(settings: Settings, stem: str) -> None:
    low, high = settings[f"{stem}-min"], settings[f"{stem}-max"]
    if low is not None and high is not None and low > high:
        raise InputError(f"{stem}-min", f"is {low}, greater than {stem}-max, {high}")


def _check_varying(settings: Settings, side: str) -> None:
    if settings[f"IP-{side}-var"] == 0:
        return
    purpose = f"IP-{side}-var is {settings[f'IP-{side}-var']}"
    for end in ("min", "max"):
        settings.required(f"IP-{side}-{end}", purpose)
    for version in {settings["IP-L-Vers"], settings["IP-R-Vers"]}:
        settings.required(f"IPv{version}-{side}-offset", f"{purpose} and IPv{version} is used")
    _check_range(settings, f"IP-{side}")
    for other in SIDES:
        if settings[f"Num-{other}-Nets"] > 1:
            raise InputError(
                f"Num-{other}-Nets",
                f"is {settings[f'Num-{other}-Nets']}, but {purpose}: varying addresses go with one network only",
            )


def _check_addresses(settings: Settings) -> None:
    """The source is the sender's Real address of its version. The destination is the other side's Real
    address, through a translator its Virt address."""
    for side in SIDES:
        version = settings[f"IP-{side}-Vers"]
        settings.required(f"IPv{version}-{side}-Real", f"IP-{side}-Vers is {version}")
    for side in SIDES:
        if (key := settings.virtual(side)) is not None:
            settings.required(key, "the other side sends there, through a translator")
