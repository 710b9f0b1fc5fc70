# SPDX-License-Identifier: Apache-2.0
"""Paths between named ports, from a user's texts: ``a->b``, ``a<->b``, ``mesh`` and ``mesh(a, b, c)``.

A path has one sending and one receiving port; ``a<->b`` are two paths, and a mesh has one from each of
its ports to each other one (RFC 2889 section 3.3: partially and fully meshed).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import permutations
from typing import TypeVar

from dutperf.model import PORT_NAME, Direction

MOST_PORTS = 16
SideT = TypeVar("SideT")
_ARROW = re.compile(rf"({PORT_NAME})\s*(<?->)\s*({PORT_NAME})")
_MESH = re.compile(r"mesh(?:\s*\((.*)\))?")


def parse(texts: Sequence[str], ports: Sequence[str]) -> dict[Direction, tuple[str, str]]:
    """The ports of each path, in the order of the texts: the sending one, then the receiving one. Raises ValueError: a
    text that is no path, a port that does not exist, or a path that comes twice. The message continues a sentence that
    begins with the texts' key."""
    paths: dict[Direction, tuple[str, str]] = {}
    for text in texts:
        for ends in _ends(text, ports):
            name = Direction("->".join(ends))
            if name in paths:
                raise ValueError(f"names the path {name} twice: {text} has it again")
            paths[name] = ends
    return paths


def arrows(text: str) -> tuple[Direction, ...]:
    """The path of ``a->b``, or both of ``a<->b``. Raises ValueError: the text is neither."""
    found = _ARROW.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"has {text!r}, which is no path: give a->b or a<->b")
    first, sign, second = found.groups()
    there, back = Direction(f"{first}->{second}"), Direction(f"{second}->{first}")
    return (there, back) if sign == "<->" else (there,)


def _ends(text: str, ports: Sequence[str]) -> Iterator[tuple[str, str]]:
    mesh = _MESH.fullmatch(text.strip())
    if _ARROW.fullmatch(text.strip()):
        for path in arrows(text):
            _check_ports(text, path.ports, ports)
            yield path.ports
    elif mesh is not None:
        named = ports if mesh[1] is None else [name.strip() for name in mesh[1].split(",")]
        _check_ports(text, named, ports)
        yield from permutations(named, 2)
    else:
        raise ValueError(f"has {text!r}, which is no path: give a->b, a<->b, mesh or mesh(a, b, c)")


def _check_ports(text: str, named: Sequence[str], ports: Sequence[str]) -> None:
    unknown = next((name for name in named if name not in ports), None)
    if unknown is not None:
        raise ValueError(f"has {text!r}, but there is no port {unknown!r}: the ports are {', '.join(ports)}")
    if len(named) < 2 or len(set(named)) < len(named):
        raise ValueError(f"has {text!r}: a path begins and ends at two different ports")


def senders_to(port: str, ends: Mapping[Direction, tuple[str, str]], sides: Mapping[str, SideT]) -> Iterable[SideT]:
    """The sides from which paths lead to a port."""
    return [sides[sender] for sender, receiver in ends.values() if receiver == port]
