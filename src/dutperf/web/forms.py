# SPDX-License-Identifier: Apache-2.0
"""What may be asked for in the form, made from the conditions' fields, and the plan that an answer makes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from dutperf import lab, procedures
from dutperf.setup import frame_file, yaml_text
from dutperf.setup.option import Offered, offered
from dutperf.setup.yaml_text import YamlError
from dutperf.web.errors import Refused

MOST_OPTIONS = 100
_SETUP_KEYS = {"lab", "lab-options", "config"}
_OF_RESULTS = "throughput-from"
"""The option whose files are results, which are served."""
_FILES = re.compile(r"FILE|DIR|PATH")


@dataclass(frozen=True)
class Places:
    """Where plans may point to."""

    setups: Path
    """Configurations of test setups, below."""
    results: tuple[Path, ...]

    def configurations(self) -> list[str]:
        """Names of the configurations that may be chosen."""
        found = (path for path in sorted(self.setups.glob("*.yaml")) if path.is_file())
        return [path.name for path in found if re.search(r"^(left|ports):", _text(path), re.MULTILINE)]

    def within(self, name: str, *, of_results: bool = False) -> Path:
        """The file of this name. Raises Refused: it is outside."""
        path = (self.setups / name).resolve() if "\0" not in name else Path("/")
        allowed = (self.setups.resolve(), *(self.results if of_results else ()))
        if not any(path.is_relative_to(one) for one in allowed):
            raise Refused(f"{name} is outside the directories that are served", 403)
        return path


def _text(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(100_000)
    except OSError:
        return ""


def procedures_offered() -> list[dict[str, Any]]:
    """Every procedure with its options, as JSON types; without those that are for the command line."""
    of_files = _options_with_files() - {_OF_RESULTS}
    return [
        {
            "name": one.name,
            "summary": one.summary,
            "options": [_field(each) for each in offered(one.conditions) if each.keys[0] not in of_files],
        }
        for one in procedures.every()
    ]


def labs_offered() -> list[dict[str, Any]]:
    return [{"name": one.name, "summary": one.summary, "options": dict(one.options)} for one in lab.list_labs()]


def _field(one: Offered) -> dict[str, Any]:
    default = one.default
    shown = ",".join(map(str, default)) if isinstance(default, tuple) else None if default is None else str(default)
    return {
        "key": one.keys[0],
        "help": re.sub(r"`(\w+)`", r"\1", one.option.described()),
        "label": one.option.label or one.keys[0].replace("-", " "),
        "placeholder": one.metavar or "",
        "default": shown.lower() if isinstance(default, bool) and shown else shown,
        "choices": _choices(one.field.annotation),
    }


def _choices(kind: Any) -> list[str]:
    for each in (kind, *get_args(kind)):
        if each is bool:
            return ["false", "true"]
        if isinstance(each, type) and issubclass(each, Enum):
            return [str(one.value) for one in each]
        if get_origin(each) is Literal:
            return [str(one) for one in get_args(each)]
    return []


def plan_of(asked: Mapping[str, Any], places: Places) -> dict[str, Any]:
    """The plan of a form: ``procedure``, ``options``, and ``lab`` with ``lab-options``, or ``config``. Raises Refused:
    it has other members, or wrong types."""
    unknown = set(asked) - _SETUP_KEYS - {"procedure", "options", "name"}
    if unknown:
        raise Refused(f"unknown: {', '.join(sorted(map(str, unknown)))}")
    procedure, options = asked.get("procedure"), asked.get("options") or {}
    if procedure is None:
        raise Refused("give a plan or a procedure")
    if not isinstance(procedure, str) or procedure not in procedures.NAMES:
        raise Refused(f"procedure: there is no {procedure}")
    if not isinstance(options, Mapping) or len(options) > MOST_OPTIONS:
        raise Refused("options: is not a mapping of names to values")
    setup = {key: asked[key] for key in _SETUP_KEYS if asked.get(key)}
    return checked({**setup, "procedures": {procedure: {key: _value(value) for key, value in options.items()}}}, places)


def _value(value: Any) -> Any:
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value, value)
    return value


def plan_from(text: object, places: Places) -> dict[str, Any]:
    """The plan of a text. Raises Refused: it is no mapping in YAML, or points outside."""
    try:
        plan = yaml_text.read(text)[0] if isinstance(text, str) else None
    except YamlError as error:
        raise Refused(f"plan: {' '.join(str(error).split())}") from None
    if not isinstance(plan, dict):
        raise Refused("plan: is not a mapping")
    return checked(plan, places)


def checked(plan: dict[str, Any], places: Places) -> dict[str, Any]:
    """The plan with absolute paths, none of which leads outside ``places``. All else is checked by ``dutperf plan
    check``. Raises Refused: a path outside."""
    if isinstance(plan.get("config"), str):
        plan = {**plan, "config": str(places.within(plan["config"]))}
    of_files = _options_with_files()
    for section in _sections(plan):
        for key, value in list(section.items()):
            if key in of_files and value is not None:
                section[key] = _inside(key, value, places)
    return plan


def _sections(plan: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    named = plan.get("procedures")
    parts = [plan.get("all"), *(named.values() if isinstance(named, Mapping) else ())]
    return [part for part in parts if isinstance(part, dict)]


@cache
def _options_with_files() -> frozenset[str]:
    return frozenset(
        key
        for definition in procedures.every()
        for one in offered(definition.conditions)
        if _FILES.search(one.metavar or "")
        for key in one.keys
    )


def files_of(recorded: Any) -> Iterator[str]:
    """Members of recorded conditions or configurations that would have a file read or written. A frame that was read
    once is not read again."""
    if isinstance(recorded, Mapping):
        members = {key.replace("-", "_") for key in _options_with_files()}
        for key, value in recorded.items():
            name = str(key).replace("-", "_")
            was_read = name == frame_file.MEMBER and recorded.get("frame") is not None
            if name in members and isinstance(value, str) and not was_read:
                yield name
            yield from files_of(value)
    elif isinstance(recorded, list):
        for value in recorded:
            yield from files_of(value)


def _inside(key: str, value: Any, places: Places) -> str:
    if not isinstance(value, str):
        raise Refused(f"{key}: is not a text")
    if key != _OF_RESULTS:
        raise Refused(f"{key}: files are for the command line", 403)
    return str(places.within(value, of_results=True))
