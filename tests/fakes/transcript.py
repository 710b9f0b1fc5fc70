# SPDX-License-Identifier: Apache-2.0
"""Golden transcripts (protocol/golden/README.md): reading them, comparing events with them, and
making events of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PROTOCOL = Path(__file__).parents[2] / "protocol"
GOLDEN = PROTOCOL / "golden"


@dataclass(frozen=True)
class Kind:
    """A figure that varies: which values are of the kind, and one of them."""

    holds: Callable[[Any], bool]
    example: Any


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


KINDS = {
    "<integer>": Kind(lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= 0, 1),
    "<any integer>": Kind(lambda value: isinstance(value, int) and not isinstance(value, bool), -1),
    "<number>": Kind(_is_number, 0.05),
    "<number or null>": Kind(lambda value: value is None or _is_number(value), None),
    "<string>": Kind(lambda value: isinstance(value, str) and value != "", "some text"),
    "<array>": Kind(lambda value: isinstance(value, list), []),
    "<object or nothing>": Kind(lambda value: isinstance(value, dict), {}),
}
OPTIONAL = "<object or nothing>"


@dataclass
class Exchange:
    """What the client sends, and the events that come before it sends the next."""

    line: str
    request: dict[str, Any] | None
    """None where ``line`` is sent raw."""
    beyond_schema: bool = False
    events: list[dict[str, Any]] = field(default_factory=list)


def names() -> list[str]:
    """All transcripts."""
    return sorted(path.stem for path in GOLDEN.glob("*.jsonl"))


def read(name: str) -> list[Exchange]:
    """The exchanges of a transcript, in order."""
    exchanges: list[Exchange] = []
    for text in GOLDEN.joinpath(f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
        line = json.loads(text)
        if line.get("from") == "engine":
            exchanges[-1].events.append(line["message"])
        elif line.get("from") == "client":
            exchanges.append(
                Exchange(
                    line.get("raw") or json.dumps(line["message"]),
                    line.get("message"),
                    line.get("beyond_schema", False),
                )
            )
        elif set(line) != {"comment"}:
            raise ValueError(f"{name}: no line of a transcript: {text}")
    return exchanges


def example(expected: Any) -> Any:
    """An event as an engine would write it: each kind replaced by a value of it."""
    if isinstance(expected, dict):
        return {name: example(value) for name, value in expected.items() if value != OPTIONAL}
    if isinstance(expected, list):
        return [example(value) for value in expected]
    return KINDS[expected].example if isinstance(expected, str) and expected in KINDS else expected


def differences(expected: Any, actual: Any, path: str = "") -> Iterator[str]:
    """Where ``actual`` is not what ``expected`` says, one text for each place."""
    if isinstance(expected, str) and expected in KINDS:
        if not KINDS[expected].holds(actual):
            yield f"{path}: {actual!r} is no {expected}"
    elif isinstance(expected, dict) and isinstance(actual, dict):
        for name in expected.keys() | actual.keys():
            yield from _difference_at(name, expected, actual, f"{path}.{name}".lstrip("."))
    elif isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        for number, (wanted, value) in enumerate(zip(expected, actual, strict=True)):
            yield from differences(wanted, value, f"{path}.{number}")
    elif expected != actual or type(expected) is not type(actual):
        yield f"{path}: {actual!r} instead of {expected!r}"


def _difference_at(name: str, expected: dict[str, Any], actual: dict[str, Any], path: str) -> Iterator[str]:
    if name not in actual:
        if expected[name] != OPTIONAL:
            yield f"{path}: is missing"
    elif name not in expected:
        yield f"{path}: {actual[name]!r} is too much"
    else:
        yield from differences(expected[name], actual[name], path)


class Script:
    """The events that are still to come in an exchange. Different requests' events may come in any
    order, ``progress`` more often than shown."""

    def __init__(self, events: list[dict[str, Any]]) -> None:
        self._left = list(events)

    @property
    def done(self) -> bool:
        """Whether every event has come."""
        return not self._left

    def take(self, actual: dict[str, Any]) -> list[str]:
        """What is wrong with the next event."""
        index = next((index for index, expected in enumerate(self._left) if expected["id"] == actual.get("id")), None)
        expected = None if index is None else self._left[index]
        if actual.get("event") == "progress" and (expected is None or expected["event"] != "progress"):
            return []
        if expected is None or index is None:
            return [f"unexpected event {json.dumps(actual)}; still to come: {json.dumps(self._left)}"]
        del self._left[index]
        return [f"{difference} (in {json.dumps(actual)})" for difference in differences(expected, actual)]
