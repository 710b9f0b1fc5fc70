# SPDX-License-Identifier: Apache-2.0
"""The engine refuses what the schema of requests refuses: each limit, choice and required member that the schema has,
at each place of example requests."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dutperf.engine.process import EngineProcess
from fakes import transcript
from protocol_schemas import REQUESTS
from request_examples import LISTED, OPENS, READY, RUNS

ENGINE = Path(__file__).parents[2] / "build" / "engine" / "dutperf-engine"
Place = tuple[str | int, ...]
Schema = dict[str, Any]


def at(within: Any, place: Place) -> Any:
    for key in place:
        within = within[key]
    return within


def resolved(schema: Schema) -> Iterator[Schema]:
    """A schema, and those that hold at the same place."""
    yield schema
    if "$ref" in schema:
        yield from resolved(at(REQUESTS.schema, tuple(schema["$ref"].split("/")[1:])))


def member_schemas(schema: Schema, value: Any) -> Iterator[tuple[str | int, Any]]:
    """The schemas of the members or entries of a value."""
    if isinstance(value, dict):
        yield from ((name, one) for name in value for one in schemas_of(schema, name))
    elif isinstance(value, list):
        first = schema.get("prefixItems", [])
        yield from enumerate([*first, *[schema.get("items")] * (len(value) - len(first))][: len(value)])


def schemas_of(schema: Schema, name: str) -> list[Any]:
    found = [schema["properties"][name]] if name in schema.get("properties", {}) else []
    found += [one for pattern, one in schema.get("patternProperties", {}).items() if re.search(pattern, name)]
    return found or [schema.get("additionalProperties")]


def applied(schema: Schema, value: Any, place: Place = ()) -> Iterator[tuple[Place, Schema]]:
    """Each schema that a request has to comply with, and where."""
    for one in resolved(schema):
        yield place, one
        for key, below in member_schemas(one, value):
            if isinstance(below, dict):
                yield from applied(below, value[key], (*place, key))
        for choice in one.get("oneOf", ()):
            if REQUESTS.evolve(schema=choice).is_valid(value):
                yield from applied(choice, value, place)


def without(value: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: one for key, one in value.items() if key != name}


def repeated(value: list[Any], count: int) -> list[Any]:
    return [*value, *value[-1:] * (count - len(value))]


def no_choice(choices: list[Any], _value: Any) -> list[Any]:
    if not all(isinstance(one, int) for one in choices):
        return ["no choice"]
    return [one for one in range(min(choices), max(choices)) if one not in choices]


VIOLATIONS: dict[str, Callable[[Any, Any], list[Any]]] = {
    "minItems": lambda least, value: [value[: least - 1]],
    "maxItems": lambda most, value: [repeated(value, most + 1)] if value else [],
    "uniqueItems": lambda _, value: [repeated(value, len(value) + 1)] if value else [],
    "minLength": lambda _least, _value: [""],
    "maxLength": lambda most, _value: ["x" * (most + 1)],
    "pattern": lambda _pattern, _value: [""],
    "format": lambda _format, _value: ["x"],
    "minProperties": lambda _least, _value: [{}],
    "minimum": lambda least, _value: [least - 1],
    "maximum": lambda most, _value: [most + 1],
    "multipleOf": lambda _, value: [value + 1],
    "type": lambda _type, _value: [None],
    "enum": no_choice,
    "const": lambda _const, _value: ["no choice"],
    "required": lambda names, value: [without(value, name) for name in names],
    "additionalProperties": lambda others, value: [value | {"unknown": 1}] if others is False else [],
    "unevaluatedProperties": lambda others, value: [value | {"unknown": 1}] if others is False else [],
}
"""By keyword, values that it refuses, by what it says and a value that it accepts."""
NO_LIMITS = {"$schema", "$comment", "$defs", "$ref", "title", "description", "default"}
NO_LIMITS |= {"properties", "patternProperties", "items", "prefixItems"}
OF_SEVERAL_MEMBERS = {"oneOf", "anyOf", "not", "contains", "dependentSchemas", "propertyNames"}
"""Keywords of which no violation follows from the value alone."""


@dataclass(frozen=True)
class Violation:
    """A request that the schema refuses for one keyword at one place."""

    place: Place
    keyword: str
    request: dict[str, Any]

    def names_the_place(self, field: str) -> bool:
        """Whether a refusal names the place, what is within it, or what it is in directly."""
        of_field, of_place = field.split("."), [str(key) for key in self.place]
        while self.place and of_place[-1].isdigit():
            del of_place[-1]
        shorter = min(len(of_field), len(of_place))
        return of_field[:shorter] == of_place[:shorter] and len(of_field) >= len(of_place) - 1


def violating(request: dict[str, Any]) -> Iterator[Violation]:
    """All violations of the schema at the places of a request, one at a time."""
    for place, schema in applied(REQUESTS.schema, request):
        if not place:
            continue
        known = [keyword for keyword in schema if keyword in VIOLATIONS]
        for keyword, value in ((one, bad) for one in known for bad in VIOLATIONS[one](schema[one], at(request, place))):
            changed = json.loads(json.dumps(request))
            at(changed, place[:-1])[place[-1]] = value
            if not REQUESTS.is_valid(changed):
                yield Violation(place, keyword, changed)


Example = tuple[list[dict[str, Any]], dict[str, Any]]
"""A request, and those after which the engine would accept it."""


def by_hand() -> Iterator[Example]:
    yield from (([], {"id": 1, "method": "open", "params": one}) for one in OPENS)
    yield from ((READY, {"id": 1, "method": "run", "params": one}) for one in RUNS)
    yield [], {"id": 1, "method": "load", "params": LISTED}
    yield READY, {"id": 1, "method": "load", "params": LISTED | {"append": True}}


def of_transcript(name: str) -> Iterator[Example]:
    """The requests that the engine accepts; a list is loaded for each."""
    before: list[dict[str, Any]] = []
    for exchange in transcript.read(name):
        request = exchange.request
        if request is None or any(event["event"] == "error" for event in exchange.events):
            continue
        yield before, request
        if request["method"] in ("open", "load"):
            before = [*before, request]


EXAMPLES = {"by hand": list(by_hand())} | {name: list(of_transcript(name)) for name in transcript.names()}


def limits(schema: Any) -> Iterator[Schema]:
    """All schemas within a schema that refuse something by themselves."""
    if isinstance(schema, list):
        for one in schema:
            yield from limits(one)
    elif isinstance(schema, dict):
        if isinstance(schema.get("type", schema.get("enum", schema.get("required"))), str | list):
            yield schema
        for keyword, below in schema.items():
            if keyword in ("properties", "patternProperties", "$defs"):
                yield from (one for member in below.values() for one in limits(member))
            elif keyword in ("items", "prefixItems", "additionalProperties", "oneOf"):
                yield from limits(below)


def test_the_examples_have_every_member() -> None:
    reached = {
        id(schema)
        for examples in EXAMPLES.values()
        for _, request in examples
        for _, schema in applied(REQUESTS.schema, request)
    }
    assert [schema for schema in limits(REQUESTS.schema) if id(schema) not in reached] == []


def test_every_kind_of_limit_is_violated() -> None:
    requests = [request for examples in EXAMPLES.values() for _, request in examples]
    keywords = {
        keyword for request in requests for _, schema in applied(REQUESTS.schema, request) for keyword in schema
    }
    violated = {violation.keyword for request in requests for violation in violating(request)}
    assert keywords - violated == NO_LIMITS | OF_SEVERAL_MEMBERS


class Asked:
    """An engine, in the state in which it would accept a request."""

    def __init__(self, process: EngineProcess) -> None:
        self._process, self._open = process, False

    def prepare(self, before: list[dict[str, Any]]) -> None:
        for one in before:
            if one["method"] == "load" or not self._open:
                self._open |= self.answer(one)["event"] == "opened"

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        self._process.send_line(json.dumps({"id": 0, **request}))
        return self._process.receive(timeout_s=20)


@pytest.mark.skipif(not ENGINE.exists(), reason=f"the engine is not built ({ENGINE})")
@pytest.mark.parametrize("name", EXAMPLES)
def test_the_engine_refuses_what_the_schema_refuses(name: str) -> None:
    process = EngineProcess([str(ENGINE)])
    engine = Asked(process)
    try:
        for before, request in EXAMPLES[name]:
            engine.prepare(before)
            for violation in violating(request):
                if request["method"] == "load":  # one that is refused leaves no list
                    engine.prepare(before)
                event = engine.answer(violation.request)
                assert event.get("code") == "bad_request", f"{violation} is answered by {event}"
                assert violation.names_the_place(event["field"]), f"{violation} is answered by {event}"
    finally:
        process.close()
