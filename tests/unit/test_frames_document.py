# SPDX-License-Identifier: Apache-2.0
"""docs/frames.md says what the package does: every header with its fields and defaults, what follows
what, examples, errors."""

from __future__ import annotations

import re

import pytest

import documents
from dutperf.frames import KINDS, Field, FrameError, Stack
from dutperf.frames.headers import Role
from dutperf.frames.options import IPV4_OPTIONS, IPV6_OPTIONS, TCP_OPTIONS

DOCUMENT = "docs/frames.md"
TEXT = (documents.ROOT / DOCUMENT).read_text(encoding="utf-8")
EXAMPLES, ERRORS = (block.text.splitlines() for block in documents.blocks(DOCUMENT) if block.language == "text")
WRONG = {
    "header 2 (vlan), character 13: ": "eth/vlan(id=5000)/ipv4",
    "header 1 (ipv4), character 6: ": "ipv4(tll=5)",
    "header 2 (udp), character 5: ": "eth/udp",
    "header 2 (udp), character 10: ": "ipv4/udp(destination=random(1,2))/vxlan/eth",
    "character 9: ": "eth/ipv4(id=3",
}


def default(field: Field) -> str:
    return field.note if field.default is None else field.form.write(field.default, field.bits)


def test_every_field_with_its_bits_and_its_default() -> None:
    expected = []
    for kind in KINDS.values():
        expected.append(f"| **`{kind.name}`** {kind.title} | | |")
        for field in (kind.field(name) for name in kind.known):
            expected.append(f"| `{field.name}` | {field.bits or ''} | {default(field)} |".replace("|  |", "| |"))
    [table] = re.findall(r"^\| header, field \|.*\n\| --- .*\n((?:\|.*\n)+)", TEXT, re.MULTILINE)
    assert table.splitlines() == expected


@pytest.mark.parametrize("name", KINDS)
def test_what_follows_a_header(name: str) -> None:
    section = TEXT[TEXT.index("| may be followed by |") :]
    first, second = next(
        line.split("|")[1:3] for line in section.splitlines() if re.match(rf"\| (`\w+`, )*`{name}`", line)
    )
    del first
    said = set(re.findall(r"`(\w+)`", second))
    if "as `ipv4`" in second:
        said |= set(KINDS["ipv4"].carries)
    if "as the next line" in second:
        said |= set(KINDS["routing"].carries)
    assert said == set(KINDS[name].carries)


def test_every_option_is_told() -> None:
    for name in (*IPV4_OPTIONS, *TCP_OPTIONS, *IPV6_OPTIONS, "raw"):
        assert re.search(rf"`{name}[`(]", TEXT), name


def test_every_field_that_cannot_vary_is_told() -> None:
    section = TEXT[TEXT.index("## Fields that vary") : TEXT.index("## Errors")]
    for kind in KINDS.values():
        for field in kind.fields:
            if field.role in (Role.SHAPE, Role.LENGTH, Role.TYPE) and field.name not in ("length", "version"):
                assert f"`{field.name}`" in section, field.name


@pytest.mark.parametrize("text", EXAMPLES)
def test_examples_are_stacks(text: str) -> None:
    assert Stack.parse(text)


@pytest.mark.parametrize("line", ERRORS)
def test_errors_are_those_of_the_package(line: str) -> None:
    text = next(text for place, text in WRONG.items() if line.startswith(place))
    with pytest.raises(FrameError) as caught:
        Stack.parse(text)
    assert str(caught.value) == line
