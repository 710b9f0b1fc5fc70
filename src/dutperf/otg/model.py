# SPDX-License-Identifier: Apache-2.0
"""The messages of the Open Traffic Generator API, as they are published with snappi, and their JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from fractions import Fraction
from importlib.metadata import version
from typing import Any

import snappi
from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor
from snappi import otg_pb2

from dutperf.errors import DutperfError

messages: Any = otg_pb2
Message = Any
"""One of ``messages``: snappi's have no types."""
SPECIFICATION = version("snappi")
"""Version of the model that is installed here: snappi has the same."""
_MOST_ERRORS = 20
_LEADING = re.compile(r"Failed to parse (\w+) field: ")


class Rejected(DutperfError):
    """A request that cannot be answered: the model's ``Error``."""

    def __init__(self, *errors: str, code: int = 400, kind: str = "validation") -> None:
        super().__init__("; ".join(errors))
        self.errors, self.code, self.kind = errors, code, kind

    def message(self) -> Message:
        """The model's message; of many errors the first ones."""
        shown = self.errors[:_MOST_ERRORS]
        more = len(self.errors) - len(shown)
        return messages.Error(
            code=self.code,
            kind=messages.Error.Kind.Enum.Value(self.kind),
            errors=[*shown, *([f"and {more} more"] if more else [])],
        )


def value_of(message: Message, name: str) -> Any:
    """A field, or where it is left out the model's default, as snappi's object of the message has it."""
    if message.HasField(name):
        return getattr(message, name)
    return getattr(getattr(snappi, message.DESCRIPTOR.name)(), name)


def exact(message: Message, name: str) -> Fraction:
    """The same of a number, as it was written: those of 32 bits have seven digits, 0.3 is not 0.30000001."""
    number = value_of(message, name)
    is_short = message.DESCRIPTOR.fields_by_name[name].type == FieldDescriptor.TYPE_FLOAT
    return Fraction(f"{number:.7g}" if is_short else str(number))


def of_error(error: DutperfError) -> Rejected:
    """The same as an error of the model: what is not the client's fault is the server's."""
    return error if isinstance(error, Rejected) else Rejected(error.sentence, code=500, kind="internal")


def read(body: bytes, kind: Any) -> Message:
    """A message of JSON; ``kind`` is its class. Raises Rejected: it is no such message; the text names the place."""
    try:
        members = json.loads(body or b"{}")
        return of_members(members, kind)
    except (ValueError, RecursionError) as error:
        raise Rejected(f"the body is no JSON: {error}") from None


def of_members(members: Any, kind: Any) -> Message:
    """A message of the members of a JSON object. Raises Rejected: see :func:`read`."""
    if not isinstance(members, dict):
        raise Rejected(f"the body is no JSON object of the model's {kind.DESCRIPTOR.name}")
    try:
        return json_format.ParseDict(members, kind())
    except (json_format.ParseError, RecursionError, ValueError, OverflowError, TypeError, AttributeError) as error:
        raise Rejected(_place(str(error))) from None


def _place(text: str) -> str:
    """What the library says, without the names of all other fields, behind those that lead there."""
    told = text.partition(" Available Fields")[0].replace('Message type "otg.', '"').rstrip(".\n")
    fields = _LEADING.findall(told)
    return ".".join(fields) + ": " + _LEADING.sub("", told) if fields else told


def as_members(message: Message) -> dict[str, Any]:
    """The JSON object of a message, as clients expect it: names in snake case, numbers of 64 bits as texts."""
    found: dict[str, Any] = json_format.MessageToDict(message, preserving_proto_field_name=True)
    return found


def chosen(message: Message, default: str = "") -> str:
    """The name of a message's choice; without one, of the only member that it has, else ``default``."""
    if message.HasField("choice"):
        return name_of(message, "choice")
    given = [field.name for field, _ in message.ListFields()]
    return given[0] if len(given) == 1 else default


def name_of(message: Message, field: str) -> str:
    enum = message.DESCRIPTOR.fields_by_name[field].enum_type
    name: str = enum.values_by_number[getattr(message, field)].name
    return name


def members_of(message: Message) -> Iterator[tuple[str, str, Message]]:
    """Each message within another one: the name of its field, its place, and itself."""
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        if field.is_repeated:
            yield from ((field.name, f"{field.name}[{number}]", one) for number, one in enumerate(value))
        else:
            yield field.name, field.name, value
