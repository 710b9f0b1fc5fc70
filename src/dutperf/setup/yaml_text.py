# SPDX-License-Identifier: Apache-2.0
"""Reads YAML as people write it in configurations and plans: addresses, versions and proportions stay
text; duplicate keys are errors."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated

import yaml
from pydantic import BeforeValidator

MOST_CHARACTERS = 1_000_000
MOST_NODES = 100_000
TRUTH_VALUE = "is true or false, as YAML reads yes, no, on and off: give a number, or put a text in quotes"
"""What is wrong with a value that should be a number or a text."""
Location = tuple[str | int, ...]
"""Path of a key: ``("left", "ipv6")``."""
Text = Annotated[str, BeforeValidator(lambda value: str(value) if isinstance(value, int | float) else value)]
"""A text, which YAML may read as a number."""


def one_or_several(given: object) -> object:
    """A list, of which one alone may be given without brackets."""
    return (given,) if isinstance(given, str | Mapping) else given


_INVISIBLE_BREAK = re.compile("[\x85\u2028\u2029]")
"""Ends a line for YAML 1.1 and this reader, not for YAML 1.2 nor for an editor: what stands behind one in a
comment would be a key."""


class YamlError(ValueError):
    """The text cannot be used as YAML. ``key`` is the path of the key (empty: the whole text), ``line``
    its line, from 1."""

    def __init__(self, message: str, key: str = "", line: int | None = None) -> None:
        super().__init__(message)
        self.key = key
        self.line = line


def read(text: str) -> tuple[object, Mapping[Location, int]]:
    """The text's value, and the line of each key. Raises YamlError: not valid YAML, nested too deeply, or a duplicate
    key."""
    _check_text(text)
    try:
        node = yaml.compose(text, Loader=_Loader)
        if _size(node, {}) > MOST_NODES:
            raise YamlError(f"has more than {MOST_NODES:,} values, aliases resolved")
        return yaml.load(text, Loader=_Loader), {} if node is None else dict(_lines(node, ()))
    except RecursionError:
        raise YamlError("is nested too deeply") from None
    except YamlError:
        raise
    except ValueError as error:  # a number of thousands of digits
        raise YamlError(f"is not valid YAML: {error}") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise YamlError(
            f"is not valid YAML: {getattr(error, 'problem', None) or error}", line=mark.line + 1 if mark else None
        ) from None


def _check_text(text: str) -> None:
    """Raises YamlError where the text is too long, or has what YAML takes for the end of a line unseen."""
    if len(text) > MOST_CHARACTERS:
        raise YamlError(f"has more than {MOST_CHARACTERS:,} characters")
    for number, line in enumerate(text.split("\n"), start=1):
        if found := _INVISIBLE_BREAK.search(line):
            raise YamlError(
                f"'{line.strip()}' has the character U+{ord(found[0]):04X}, which YAML takes for the end of a line;"
                " remove it",
                line=number,
            )


def _size(node: yaml.Node | None, known: dict[int, int]) -> int:
    """The number of values below a node. An alias is its anchor's node again: a few lines can make billions of it.
    Raises YamlError: the node is below itself."""
    if not isinstance(node, yaml.CollectionNode):
        return 1
    if known.get(id(node)) == 0:
        raise YamlError("has an alias that stands for what it is in", line=node.start_mark.line + 1)
    if (size := known.get(id(node))) is None:
        known[id(node)] = 0  # under way
        below = (one for each in node.value for one in (each if isinstance(each, tuple) else (each,)))
        size = known[id(node)] = 1 + sum(_size(one, known) for one in below)
    return size


def path_of(location: Location) -> str:
    """``left.ipv6``."""
    return ".".join(str(part) for part in location)


class _Loader(yaml.SafeLoader):
    """Leaves some values text: YAML 1.1 reads a MAC or PCI address or 2:1 as a number to the base 60,
    the version 0.10 as 0.1, and a date as a date."""


_NOT_RESOLVED = {"tag:yaml.org,2002:int", "tag:yaml.org,2002:float", "tag:yaml.org,2002:timestamp"}
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _NOT_RESOLVED]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:int", re.compile(r"^(?:[-+]?(?:0|[1-9][0-9]*)|0x[0-9a-fA-F]+)$"), list("-+0123456789")
)


def _lines(node: yaml.Node, location: Location) -> Iterator[tuple[Location, int]]:
    """The line of each key and each element of a list. YAML's loader would silently take the last of duplicate keys."""
    if isinstance(node, yaml.SequenceNode):
        for index, element in enumerate(node.value):
            yield (*location, index), element.start_mark.line + 1
            yield from _lines(element, (*location, index))
    if not isinstance(node, yaml.MappingNode):
        return
    seen: set[str] = set()
    for key, value in node.value:
        here, line = (*location, str(key.value)), key.start_mark.line + 1
        if str(key.value) in seen:
            raise YamlError("is given twice", path_of(here), line)
        seen.add(str(key.value))
        yield here, line
        yield from _lines(value, here)
