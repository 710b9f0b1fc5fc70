# SPDX-License-Identifier: Apache-2.0
"""docs/frames.md says what the package does: options, what cannot vary, examples, errors. Its tables of headers are
generated (test_cli_reference.py)."""

from __future__ import annotations

import re

import pytest

import documents
from dutperf.frames import KINDS, FrameError, Stack
from dutperf.frames.headers import Role
from dutperf.frames.options import IPV4_OPTIONS, IPV6_OPTIONS, TCP_OPTIONS

DOCUMENT = "docs/frames.md"
TEXT = (documents.ROOT / DOCUMENT).read_text(encoding="utf-8")
EXAMPLES, [ERROR] = (block.text.splitlines() for block in documents.blocks(DOCUMENT) if block.language == "text")
WRONG = "ipv4(tll=5)"


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


def test_the_error_is_that_of_the_package() -> None:
    with pytest.raises(FrameError) as caught:
        Stack.parse(WRONG)
    assert str(caught.value) == ERROR
