# SPDX-License-Identifier: Apache-2.0
"""The package's models and the schemas of the protocol have the same members and limits: whatever a trial can hold is a
request that the engine's schema allows, and whatever its schema of events allows is read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core.core_schema import CoreSchema

from dutperf.model import (
    CaptureWritten,
    ConnectionCounts,
    DirectionCounts,
    InSum,
    NeighbourEvidence,
    Phase,
    ServerCounts,
    SoFar,
    Value,
)
from protocol_schemas import EVENTS, REQUESTS

Schema = dict[str, Any]
KNOWN_HERE = {"question", "native", "name", "stream"}
"""Members of trials that the engine does not get."""
REQUEST_OF_ITS_OWN = {"replay"}
"""Members for which the engine gets others (:meth:`dutperf.model.replay.Replay.request`), not compared here."""
STRONGER = {
    (r"^(0|[1-9][0-9]{0,38})$", "^[0-9]{1,39}$"),
    (r"^[0-9a-f]([02468ace])(:[0-9a-f]{2}){5}$", "^[0-9a-f]{2}(:[0-9a-f]{2}){5}$"),
    (
        r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?){0,7}$",
        r"^[a-z0-9-]{1,63}(\.[a-z0-9-]{1,63}){0,7}$",
    ),
    ("ipv4network", "^[0-9.]+/([0-9]|[12][0-9]|3[0-2])$"),
    ("ipv6network", "/(32|40|48|56|64|96)$"),  # test_dns64: questions have these lengths alone
}
"""Patterns and formats, and patterns that allow all that they do."""


class Whole:
    """A schema with the one in which its references are."""

    def __init__(self, schema: Schema, root: Schema) -> None:
        self.root, self.schema = root, schema
        while "$ref" in self.schema:
            found = root
            for key in self.schema["$ref"].split("/")[1:]:
                found = found[key]
            self.schema = found | {key: value for key, value in self.schema.items() if key != "$ref"}

    def within(self, schema: Any) -> Whole:
        return Whole({} if schema is True else schema, self.root)

    def alternatives(self) -> list[Whole]:
        """What a value may be, each by itself; not JSON's null: members without a value are absent."""
        several = self.schema.get("anyOf", self.schema.get("oneOf", ()))
        if not any("$ref" in one or {"type", "properties", "enum", "const"} & set(one) for one in several):
            return [self]
        return [one for each in several for one in self.within(each).alternatives() if one["type"] != "null"]

    def members(self) -> dict[str, Whole]:
        return {name: self.within(one) for name, one in self.schema.get("properties", {}).items()}

    def others(self) -> Whole | None:
        """Of members with any other name; None: there are none."""
        found = [*self.schema.get("patternProperties", {}).values(), self.schema.get("additionalProperties", True)]
        return None if found[0] is False else self.within(found[0])

    def entries(self) -> Whole:
        return self.within(self.schema.get("items", True))

    def choices(self) -> list[Any] | None:
        return [self["const"]] if "const" in self.schema else self["enum"]

    def lowest(self) -> float:
        return self.schema.get("minimum", self.schema.get("exclusiveMinimum", float("-inf")))

    def highest(self) -> float:
        above = self.schema.get("exclusiveMaximum", float("inf"))
        return self.schema.get("maximum", above - 1)

    def __getitem__(self, keyword: str) -> Any:
        return self.schema.get(keyword)


def excess(inner: Whole, outer: Whole, place: str = "") -> Iterator[str]:
    """What ``inner`` allows at a place and ``outer`` does not."""
    for one in inner.alternatives():
        beside = [other for other in outer.alternatives() if _may_be(one["type"], other["type"])]
        if beside:
            yield from min((list(_excess(one, other, place)) for other in beside), key=len)
        else:
            yield f"{place}: {one['type']}"


def _may_be(inner: str | None, outer: str | None) -> bool:
    """Whether a value of one type is of the other one; None: not said, or by its choices."""
    return None in (inner, outer) or inner == outer or (inner, outer) == ("integer", "number")


def _excess(inner: Whole, outer: Whole, place: str) -> Iterator[str]:
    choices, possible = inner.choices(), outer.choices()
    if possible is not None:
        if choices is None or set(map(json.dumps, choices)) - set(map(json.dumps, possible)):
            yield f"{place}: {choices or 'anything'}, of {possible}"
        return
    if inner.lowest() < outer.lowest() or inner.highest() > outer.highest():
        yield f"{place}: {inner.lowest()} to {inner.highest()}, of {outer.lowest()} to {outer.highest()}"
    for least, most in (("minItems", "maxItems"), ("minLength", "maxLength")):
        is_absent = inner["default"] == []
        if inner.schema.get(least, 0) < outer.schema.get(least, 0) and not is_absent:
            yield f"{place}: {least} {inner[least]}, of {outer[least]}"
        if inner.schema.get(most, float("inf")) > outer.schema.get(most, float("inf")):
            yield f"{place}: {most} {inner[most]}, of {outer[most]}"
    patterns = inner["pattern"] or inner["format"], outer["pattern"]
    if outer["pattern"] is not None and len(set(patterns)) > 1 and patterns not in STRONGER:
        yield f"{place}: {patterns[0]}, of {patterns[1]}"
    yield from _excess_within(inner, outer, place)


def _excess_within(inner: Whole, outer: Whole, place: str) -> Iterator[str]:
    members, known = inner.members(), outer.members()
    for name, one in members.items():
        beside = known.get(name, outer.others())
        if name in REQUEST_OF_ITS_OWN or (name in KNOWN_HERE and name not in known):
            continue
        if beside is None:
            yield f"{place}.{name}: unknown"
        else:
            yield from excess(one, beside, f"{place}.{name}")
    others, beside = inner.others(), outer.others()
    if others is not None and beside is not None and "additionalProperties" in inner.schema:
        yield from excess(others, beside, f"{place}.*")
    if inner["type"] == "array":
        yield from excess(inner.entries(), outer.entries(), f"{place}[]")


class OfModels(GenerateJsonSchema):
    def handle_invalid_for_json_schema(self, schema: CoreSchema, error_info: str) -> Schema:
        return {}


def of_model(model: Any) -> Whole:
    schema = model.model_json_schema(schema_generator=OfModels)
    return Whole(schema, schema)


def of_protocol(protocol: Draft202012Validator, name: str, *members: str) -> Whole:
    found = Whole({"$ref": f"#/$defs/{name}"}, protocol.schema)
    for member in members:
        found = found.members()[member]
    return found


def test_what_a_trial_can_hold_is_a_request() -> None:
    assert list(excess(of_model(Phase), of_protocol(REQUESTS, "trial"))) == []


@pytest.mark.parametrize(
    ("model", "place"),
    [
        (DirectionCounts, ("direction",)),
        (SoFar, ("so_far",)),
        (NeighbourEvidence, ("neighbours",)),
        (InSum, ("result", "in_sum")),
        (CaptureWritten, ("result", "capture")),
        (ConnectionCounts, ("result", "connections")),
        (ServerCounts, ("result", "server")),
    ],
)
def test_what_an_event_can_hold_is_read(model: type[Value], place: tuple[str, ...]) -> None:
    assert list(excess(of_protocol(EVENTS, *place), of_model(model))) == []


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [
        ({"type": "integer", "minimum": 1}, {"type": "integer", "minimum": 0}),
        ({"type": "integer", "maximum": 9}, {"type": "integer", "exclusiveMaximum": 11}),
        ({"type": "array", "minItems": 1}, {"type": "array"}),
        ({"type": "array", "maxItems": 4}, {"type": "array", "maxItems": 5}),
        ({"type": "array", "items": {"const": 1}}, {"type": "array", "items": {"enum": [1, 2]}}),
        ({"type": "string", "maxLength": 4}, {"type": "string"}),
        ({"type": "string", "pattern": "^a$"}, {"type": "string"}),
        ({"const": "a"}, {"enum": ["a", "b"]}),
        ({"type": "integer"}, {"type": "number"}),
        ({"type": "integer"}, {"anyOf": [{"type": "string"}, {"type": "integer"}]}),
        (
            {"type": "object", "properties": {"a": {"const": 1}}, "additionalProperties": False},
            {"type": "object", "properties": {"a": {"const": 1}, "b": {"const": 1}}, "additionalProperties": False},
        ),
    ],
)
def test_a_wider_schema_is_found(narrow: Schema, wide: Schema) -> None:
    assert list(excess(Whole(narrow, {}), Whole(wide, {}))) == []
    assert list(excess(Whole(wide, {}), Whole(narrow, {}))) != []
