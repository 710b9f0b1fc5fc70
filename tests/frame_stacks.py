# SPDX-License-Identifier: Apache-2.0
"""Header stacks for hypothesis: any headers that may follow each other, any fields."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from dutperf.frames import KINDS, Field, Header, Stack, Varying
from dutperf.frames.headers import Role, Value
from dutperf.frames.options import Kinds, Option, encode
from dutperf.frames.values import Computed


def options_of(kinds: Kinds) -> st.SearchStrategy[tuple[Option, ...]]:
    raw = st.builds(Option, st.just("raw"), data=st.binary(min_size=1, max_size=6))
    known = [
        st.builds(
            Option,
            st.just(name),
            st.lists(
                st.integers(kind.smallest, min((1 << kind.bits) - 1, 1 << 40)), min_size=kind.fewest, max_size=kind.most
            ).map(tuple),
        )
        for name, kind in kinds.items()
    ]
    lists = st.lists(st.one_of(raw, *known), max_size=3).map(tuple)
    return lists.filter(lambda some: len(encode(some, kinds)) <= 40)


def counting(first: int, step: int, count: int, by: Any, bits: int, mode: Any) -> Varying:
    room = ((1 << bits) - 1 - first) // step + 1 if mode == "increasing" else first // step + 1
    count = min(count, room)
    return Varying(mode, first, step if count > 1 else 1, count, by=by)


def varying(bits: int) -> st.SearchStrategy[Varying]:
    number = st.integers(0, (1 << bits) - 1)
    by = st.sampled_from(["frame", "flow"])
    step = st.integers(1, max((1 << bits) - 1, 1))
    return st.one_of(
        st.builds(lambda a, b: Varying("random", min(a, b), count=abs(a - b) + 1), number, number),
        st.builds(
            counting,
            number,
            step,
            st.integers(1, 1 << bits),
            by,
            st.just(bits),
            st.sampled_from(["increasing", "decreasing"]),
        ),
        st.builds(
            lambda some, by: Varying("list", values=tuple(some), by=by), st.lists(number, min_size=1, max_size=3), by
        ),
    )


def value_of(field: Field) -> st.SearchStrategy[Value]:
    if field.kinds is not None:
        return options_of(field.kinds).filter(bool)
    if field.name == "size":
        return st.just(56)
    if field.name == "segments":
        return st.lists(st.one_of(st.integers(0, (1 << 128) - 1), varying(128)), min_size=1, max_size=3).map(tuple)
    if field.name == "data":
        return st.binary(min_size=1, max_size=40)
    if not field.bits:
        return st.nothing()
    fixed: st.SearchStrategy[Value] = st.integers(0, (1 << field.bits) - 1)
    if field.role is Role.CHECKSUM:
        return st.one_of(fixed, st.just(Computed.YES), varying(field.bits))
    return st.one_of(fixed, varying(field.bits)) if field.role is Role.PLAIN else fixed


@st.composite
def stacks(draw: st.DrawFn) -> Stack:
    """Any stack that is possible, but for routing headers with data and extension headers of GTP-U."""
    names, tags = ["eth"], 0
    while names[-1] == "vxlan" or (KINDS[names[-1]].carries and len(names) < 9 and draw(st.booleans())):
        tags = tags + 1 if names[-1] == "vlan" else 0
        names.append(draw(st.sampled_from([one for one in KINDS[names[-1]].carries if one != "vlan" or tags < 3])))
    headers = []
    for name in names:
        kind = KINDS[name]
        chosen = draw(st.sets(st.sampled_from(kind.known), max_size=4))
        needed = {"data"} if name == "payload" else {"segments"} & set(kind.known)
        chosen = chosen - {"data", "next_extension"} | needed
        headers.append(
            Header(name, tuple((one, draw(value_of(kind.field(one)))) for one in kind.known if one in chosen))
        )
    return Stack(tuple(headers))
