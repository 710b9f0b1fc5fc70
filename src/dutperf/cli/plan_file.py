# SPDX-License-Identifier: Apache-2.0
"""The plan of ``dutperf run``: the test setup, the procedures, and their options with the names and
values of the command line.

An unknown key, or one without an effect, is an error, as in a configuration.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dutperf import procedures
from dutperf.cli import condition_options
from dutperf.cli.commands.measure import Wanted
from dutperf.procedures.definition import Definition
from dutperf.run import testbench
from dutperf.run.testbench import Source
from dutperf.setup import configuration, yaml_text
from dutperf.setup.configuration import MAX_QUEUES, ConfigError
from dutperf.setup.option import Offered, offered
from dutperf.setup.yaml_text import Location, YamlError, path_of
from dutperf.spelling import hint

SOURCE = ("lab", "lab-options", "config", "queues", "offloads")
KEYS = (*SOURCE, "all", "procedures")


@dataclass(frozen=True)
class PlanFile:
    source: Source
    wanted: Wanted


def load(path: Path) -> PlanFile:
    """Read and check a plan. Raises ConfigError: it cannot be read, or has an invalid value; one sentence that names
    the file, the line and the key."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError(f"cannot read {path}: {reason}", "") from None
    try:
        mapping, lines = yaml_text.read(text)
        return _parse(mapping, path.parent)
    except YamlError as error:
        raise ConfigError(str(error), error.key, origin=str(path), line=error.line) from None
    except _Invalid as error:
        places = (error.location[:length] for length in range(len(error.location), 0, -1))
        line = next((lines[location] for location in places if location in lines), None)
        raise ConfigError(error.message, path_of(error.location), origin=str(path), line=line) from None


class _Invalid(Exception):
    def __init__(self, location: Location, message: str) -> None:
        self.location = location
        self.message = message


def _parse(plan: object, directory: Path) -> PlanFile:
    top = _mapping(plan, (), KEYS)
    named = _mapping(top.get("procedures"), ("procedures",), procedures.NAMES)
    if not named:
        raise _Invalid(("procedures",), "is missing: name the procedures to run")
    definitions = {name: procedures.find(name) for name in named}
    options_of = {name: options_of_procedure(definition) for name, definition in definitions.items()}
    shared = _mapping(top.get("all"), ("all",), sorted({key for own in options_of.values() for key in own}))
    source = _source(top, directory)
    wanted = []
    for name, definition in definitions.items():
        own = _mapping(named[name], ("procedures", name), options_of[name])
        for members, place in ((shared, ("all",)), (own, ("procedures", name))):
            _require_one_name(members, place, options_of[name])
        places: dict[str, Location] = {key: ("all", key) for key in shared if key in options_of[name]} | {
            key: ("procedures", name, key) for key in own
        }
        values = {key: own.get(key, shared.get(key)) for key in places}
        wanted += [
            (definition, conditions)
            for conditions in _conditions(definition, options_of[name], values, places, directory)
        ]
    return PlanFile(source, wanted)


def _source(top: Mapping[str, Any], directory: Path) -> Source:
    for key in ("lab", "config"):
        if key in top and not isinstance(top[key], str):
            raise _Invalid((key,), yaml_text.TRUTH_VALUE if isinstance(top[key], bool) else "is not a name")
    lab_options = {
        str(key): _lab_option(value, ("lab-options", str(key)))
        for key, value in _mapping(top.get("lab-options"), ("lab-options",), None).items()
    }
    if ("lab" in top) == ("config" in top):
        raise _Invalid(("lab",), "give either lab or config" + (", not both" if "lab" in top else ""))
    if "config" in top and lab_options:
        raise _Invalid(("lab-options",), "has no effect with config")
    queues = top.get("queues")
    if queues is not None and (type(queues) is not int or not 1 <= queues <= MAX_QUEUES):
        raise _Invalid(("queues",), f"should be a number from 1 to {MAX_QUEUES}")
    file = directory / top["config"] if "config" in top else None
    if file is not None and not file.exists():
        raise _Invalid(("config",), f"there is no {file}")
    return Source.of(top.get("lab"), lab_options, file, queues, _offloads(top.get("offloads")))


def _lab_option(value: object, place: Location) -> str:
    if isinstance(value, bool):
        raise _Invalid(place, yaml_text.TRUTH_VALUE)
    try:
        return testbench.lab_option(value)
    except ValueError as error:
        raise _Invalid(place, str(error)) from None


def _offloads(names: Any) -> configuration.Offloads | None:
    if names is not None and (not isinstance(names, list) or not all(isinstance(name, str) for name in names)):
        raise _Invalid(("offloads",), "is not a list of names")
    try:
        return None if names is None else configuration.offloads(names, "offloads")
    except ConfigError as error:
        raise _Invalid(("offloads",), error.message) from None


def _require_one_name(members: Iterable[str], place: Location, options_of: Mapping[str, Offered]) -> None:
    """Raises _Invalid if two keys are names of the same option."""
    seen: dict[str, str] = {}
    for key in members:
        if key in options_of and (other := seen.setdefault(options_of[key].name, key)) != key:
            raise _Invalid((*place, key), f"is another name of {other}: give one of both")


def options_of_procedure(definition: Definition) -> dict[str, Offered]:
    """The procedure's options by key: their names on the command line, without the dashes."""
    return {key: one for one in offered(definition.conditions) for key in one.keys}


def _conditions(
    definition: Definition,
    allowed: Mapping[str, Offered],
    values: Mapping[str, Any],
    places: Mapping[str, Location],
    directory: Path,
) -> Iterable[Any]:
    chosen = {allowed[key].name: _typed(allowed[key], values[key], places[key], directory) for key in values}
    try:
        return condition_options.chosen(definition.conditions, chosen)
    except ConfigError as error:
        named = (places[key] for key, one in allowed.items() if one.flag == error.key and key in places)
        raise _Invalid(next(named, ("procedures", definition.name)), error.message) from None


def _typed(one: Offered, value: object, place: Location, directory: Path) -> Any:
    """``value`` in the form that the conditions take."""
    if isinstance(value, bool) and one.field.annotation is bool:
        return value
    listed = value if isinstance(value, list) else [value]
    if any(isinstance(each, bool) for each in listed):
        raise _Invalid(place, yaml_text.TRUTH_VALUE)
    if not all(isinstance(each, str | int | float) for each in listed) or not listed:
        raise _Invalid(place, "should be a number, a text, or a list of them")
    if isinstance(value, list) and not (one.option.several or one.option.listed or "," in (one.metavar or "")):
        raise _Invalid(place, "takes one value, not a list")
    if one.is_path:
        path = directory / str(listed[0])
        return path if one.metavar == "DIR" else str(path)
    if len(listed) > 1:
        return listed
    return str(listed[0]) if "," in (one.metavar or "") else listed[0]


def _mapping(value: object, place: Location, allowed: Iterable[str] | None) -> Mapping[str, Any]:
    """``value``, checked to have only ``allowed`` keys (None: any); empty for None."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise _Invalid(place, "is not a mapping of keys to values")
    for key in value:
        if allowed is not None and key not in (keys := list(allowed)):
            raise _Invalid((*place, str(key)), f"unknown key; {hint(str(key), keys)}")
    return value
