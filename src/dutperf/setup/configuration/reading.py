# SPDX-License-Identifier: Apache-2.0
"""Reads configurations, from YAML and from journals. Every error is one sentence that names the key, and its line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from pydantic import (
    BaseModel,
    TypeAdapter,
    ValidationError,
)
from pydantic_core import ErrorDetails

from dutperf import errors
from dutperf.model import (
    to_json,
)
from dutperf.setup import yaml_text
from dutperf.setup.configuration.checks import check
from dutperf.setup.configuration.errors import ConfigError, Invalid, ParameterError
from dutperf.setup.configuration.keys import HAS_LOCATIONS, Dut, Offloads, Setup
from dutperf.setup.yaml_text import Location, YamlError, path_of
from dutperf.spelling import hint


def load(path: Path) -> Setup:
    """Read and check a configuration file. Raises ConfigError: it cannot be read, is not valid YAML, or has an invalid
    value."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ParameterError(f"cannot read {path}: {reason}", "config") from None
    return parse_yaml(text, origin=str(path))


def place_of(key: str, path: Path) -> tuple[str, int | None] | None:
    """The configuration file and the line of a key, for an error that shows later than the file is read: of the engine,
    or of what is measured. None: the file does not have such keys."""
    if key.partition(".")[0] not in Setup.model_fields:
        return None
    try:
        _, lines = yaml_text.read(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # it has changed, or was never a file
        return None
    known = {path_of(location): line for location, line in lines.items()}
    while key and key not in known:
        key = key.rpartition(".")[0]
    return str(path), known.get(key)


def parse_yaml(text: str, origin: str) -> Setup:
    """Check a configuration in YAML; ``origin`` names its source in errors."""
    try:
        mapping, lines = yaml_text.read(text)
    except YamlError as error:
        raise ConfigError(str(error), error.key, origin=origin, line=error.line) from None
    return parse(mapping, origin, lines)


def parse(mapping: object, origin: str, lines: Mapping[Location, int] | None = None) -> Setup:
    """Check a configuration; ``lines`` has the line of each key."""
    try:
        if not isinstance(mapping, Mapping):
            raise Invalid((), "a configuration is a mapping with the keys " + ", ".join(Setup.model_fields))
        for location in _truth_values(mapping):
            raise Invalid(location, yaml_text.TRUTH_VALUE)
        engine = mapping.get("engine")
        has_locations = isinstance(engine, Mapping) and engine.get("otg") is not None
        setup = Setup.model_validate(mapping, context={HAS_LOCATIONS: has_locations})
        check(setup)
    except ValidationError as error:
        details = errors.first(error)
        details["loc"] = tuple(_as_given(details["loc"], mapping, is_missing=details["type"] == "missing"))
        names = mapping.get("ports") if isinstance(mapping, Mapping) else None
        location, message = details["loc"], _sentence(details, list(names) if isinstance(names, Mapping) else ())
    except Invalid as error:
        location, message = error.location, error.message
    else:
        return setup
    raise _error(location, _stream_at(location, mapping) + message, origin, lines)


def _as_given(location: Location, given: object, *, is_missing: bool) -> Iterator[str | int]:
    """The keys of a location that a configuration has: without what pydantic adds of a union and of values that are
    made of a text."""
    for number, part in enumerate(location, 1):
        members = given if isinstance(given, Mapping) else dict(enumerate(given if isinstance(given, list) else ()))
        if part in members:
            given = members[part]
        elif not (is_missing and number == len(location)):
            continue
        yield part


def _stream_at(location: Location, mapping: object) -> str:
    """Begins a sentence about a stream, whose key has only its number; empty: it is about something else."""
    match location, mapping:
        case ("streams", int(number), *within), {"streams": Sequence() as streams} if within != ["name"]:
            name = streams[number].get("name") if isinstance(streams[number], Mapping) else None
            return f"the stream {name}: " if name and isinstance(name, str) else ""
    return ""


def _truth_values(given: object, location: Location = ()) -> Iterator[Location]:
    """Where a configuration has true or false, which no key takes: a number made of it would be 0 or 1, and a text
    ``False``. The DUT may have further keys."""
    if isinstance(given, bool):
        of_dut = [part for part in location[1:] if isinstance(part, str)]
        if location[:1] != ("dut",) or not of_dut or of_dut[0] in Dut.model_fields:
            yield location
    elif isinstance(given, Mapping):
        for key, value in given.items():
            if ((*location, key), value) != (("engine", "flow_control"), False):
                yield from _truth_values(value, (*location, str(key)))
    elif isinstance(given, list | tuple):
        for number, value in enumerate(given):
            yield from _truth_values(value, (*location, number))


def offloads(names: Iterable[str], key: str) -> Offloads:
    """Hardware offloads by their names. Raises ConfigError: an unknown offload, or a duplicate; ``key`` names the
    source."""
    try:
        return _OFFLOADS.validate_python(tuple(names))
    except ValidationError as error:
        raise ConfigError(_sentence(errors.first(error)), key) from None


_OFFLOADS: TypeAdapter[Offloads] = TypeAdapter(Offloads)


def as_json(setup: Setup) -> dict[str, Any]:
    """The configuration as JSON types, for a journal, without members that were not set.

    The DUT's commands are left out too: they may hold secrets, and no command from a results file
    may run as root.
    """
    members = to_json(setup)
    for described in [members["dut"]] if isinstance(setup.dut, Dut) else members["dut"]:
        described.pop("commands", None)
    return members


def commands_of(setup: Setup) -> list[str]:
    """Names of the DUT's commands in the configuration, after those of the DUTs where there are several."""
    named = {"": setup.dut} if isinstance(setup.dut, Dut) else {f"{one.name}: ": one for one in setup.dut}
    return [
        f"{dut}{command}"
        for dut, one in named.items()
        if one.commands is not None
        for command in sorted(one.commands.names())
    ]


def _error(location: Location, message: str, origin: str, lines: Mapping[Location, int] | None) -> ConfigError:
    known = [location[:length] for length in range(len(location), 0, -1) if location[:length] in (lines or {})]
    line = (lines or {}).get(known[0]) if known else None
    return ConfigError(message, path_of(location), origin=origin, line=line)


# --- messages for validation errors ---------------------------------------------------------------

_MOST_PLACES = 3
"""Those of a key that a hint names."""


def _sentence(details: ErrorDetails, names: Sequence[str] = ()) -> str:
    """``names``: of the ports, if they have other names than left and right."""
    kind, location = details["type"], details["loc"]
    if kind == "extra_forbidden":
        return _unknown_key(location, names)
    if kind == "missing":
        return "is missing"
    if kind == "tuple_type":
        given = details["input"]
        return "should be a list" + (f", as in [{given}]" if isinstance(given, str | int | float) else "")
    if kind == "model_type":
        return f"should be a mapping, with keys of {', '.join(_keys_at(location))}"
    reason = (
        details["msg"]
        .replace("Input should be", "should be")
        .replace("Input is", "is")
        .replace("Tuple should have", "should have")
    )
    return f"{reason} (it is {details['input']!r})" if isinstance(details["input"], str | int | float) else reason


def _unknown_key(location: Location, names: Sequence[str]) -> str:
    key = str(location[-1])
    side = dict.fromkeys(("left", "right"), ("ports", names[0])) if names else {}
    places = ((*side.get(str(place), (place,)), *within) for place, *within in _places_of(key, Setup))
    elsewhere = list(dict.fromkeys(path_of(place) for place in places))
    if 0 < len(elsewhere) <= _MOST_PLACES:
        return f"unknown key; did you mean {' or '.join(elsewhere)}?"
    return f"unknown key; {hint(key, _keys_at(location[:-1]))}"


def _places_of(key: str, model: type[BaseModel]) -> Iterator[Location]:
    """Where a key may stand in a configuration with ``left`` and ``right``, and one stream."""
    for name, field in model.model_fields.items():
        if name == key:
            yield (name,)
        place = (name, 0) if name == "streams" else (name,)
        for kind in _models_in(field.annotation) if name not in ("ports", "between") else ():
            yield from ((*place, *rest) for rest in _places_of(key, kind))


def _keys_at(location: Location) -> Iterator[str]:
    """The keys that are allowed in the mapping at ``location``."""
    model: type[BaseModel] = Setup
    named = False
    for part in location:
        if isinstance(part, int) or named:
            named = False
            continue  # an entry of a list or of the ports, whose model is known
        model = next(_models_in(model.model_fields[str(part)].annotation))
        named = part == "ports"
    yield from model.model_fields


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models that a type consists of."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models_in(part)
