# SPDX-License-Identifier: Apache-2.0
"""Documents, help and messages use the words of the field."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import documents
import dutperf
from dutperf.cli import reference

INSTEAD = {
    r"help of hardware|\bhelps\b": "hardware offloads",
    r"\b(is|are|was|were|time|or) away\b|\baway_us\b": "stall, or down, or missing",
    r"\bcatch(es|ing)? up\b|\bbursts? that makes? up\b": "late burst",
    r"\bsilences?\b": "arrival gap",
    r"\brefused by the (driver|card|NIC)\b": "not accepted",
    r"\bdamaged frames?\b|\bframes? (is|are|was|were) damaged\b": "corrupted",
    r"\bovert(ake|akes|aken|aking|ook)\b": "reordered",
    r"\bcopies of (a|the|one) frame\b(?! to)": "duplicates",
    r"\bgather(s|ed|ing)?\b": "collect",
    r"\bjoint(ly)?\b": "merged",
    r"\b(un)?alike\b": "the same, identically distributed",
    r"\bneighbour stations?\b|\bown stations?\b": "neighbour responder",
    r"\b(is|are|was|were|be|nothing) told\b": "stated, reported",
    r"\bchances\b": "probabilities",
    r"\bhappenings?\b": "event",
    r"\bsilent\b": "not forwarding",
    r"(?<!offered )(?<!--)\bloads\b(?! (vfio|the|its|a|from)\b)": "offered loads",
    r"\black(s|ed|ing)?\b": "missing, has no",
    r"\bbef[ae]lls?\b": "inject fault",
    r"\bwitness(es)?\b": "ground truth",
    r"\bendings\b": "exit status",
    r"\banew\b": "again, restart",
    r"\bcourse of (a|the) (run|search|trial)\b": "progress, search path",
    r"\bloss tolerances?\b": "loss ratio goal",
    r"\bset-ups?\b(?! and machine)": "test setup, topology",
    r"\blimited by the range\b": "search range",
}
"""What we wrote, to what the field says."""
OF_OTHERS = {"CHANGELOG.md", "protocol/README.md"}
"""A history, and a specification whose words are those of its messages."""


def prose(document: str) -> str:
    """Without code and the targets of links."""
    text = (documents.ROOT / document).read_text(encoding="utf-8")
    text = re.sub(r"^ *```.*?^ *```", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"\]\([^)]*\)|`[^`]*`", "` `", text)


def sentences(path: Path) -> Iterator[str]:
    """The strings of a module that are no docstrings and have several words in one line: messages, labels."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    statements = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        text = node.value if isinstance(node, ast.Constant) and id(node) not in statements else None
        if isinstance(text, str) and " " in text and "\n" not in text:
            yield text


def used(text: str) -> dict[str, str]:
    """The words in it that are to be replaced, by what the field says."""
    flat = " ".join(text.split())
    return {word[0]: better for old, better in INSTEAD.items() if (word := re.search(old, flat, re.IGNORECASE))}


@pytest.mark.parametrize("document", [one for one in documents.documents() if one not in OF_OTHERS])
def test_a_document_uses_the_words_of_the_field(document: str) -> None:
    assert not used(prose(document))


@pytest.mark.parametrize("page", tuple(reference.pages()), ids=lambda page: page.name)
def test_help_uses_the_words_of_the_field(page: reference.Page) -> None:
    for text in (page.text, *(one.help for one in page.entries)):
        assert not used(text), text


def test_messages_use_the_words_of_the_field() -> None:
    paths = sorted(Path(dutperf.__file__).parent.rglob("*.py"))
    assert not {text: words for path in paths for text in sentences(path) if (words := used(text))}


def test_the_words_are_found() -> None:
    assert used("The search's course\nof a run, and its joint account") == {
        "course of a run": "progress, search path",
        "joint": "merged",
    }
    assert not used("The offered loads; modprobe loads the driver; two test setups. Their set up takes a second.")
    assert prose("CONTRIBUTING.md").count("make check") == 0
