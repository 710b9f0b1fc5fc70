# SPDX-License-Identifier: Apache-2.0
"""Conditions as JUnit XML, which CI systems show as tests."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from dutperf.journal import write_whole


@dataclass(frozen=True)
class Checked:
    """A condition on a figure."""

    condition: str
    where: str
    outcome: str
    """``holds``, ``failed`` or ``not judged``."""
    text: str


def xml(name: str, checked: Sequence[Checked]) -> str:
    """A test suite with a test for each: one that failed is a failure, one that was not judged is an error, because
    nobody knows whether it holds."""
    count = {outcome: sum(one.outcome == outcome for one in checked) for outcome in ("failed", "not judged")}
    numbers = {"tests": len(checked), "failures": count["failed"], "errors": count["not judged"]}
    suite = ElementTree.Element("testsuite", {"name": name, **{key: str(value) for key, value in numbers.items()}})
    for one in checked:
        names = {"classname": _clean(one.where), "name": _clean(one.condition)}
        case = ElementTree.SubElement(suite, "testcase", names)
        if one.outcome != "holds":
            kind = "failure" if one.outcome == "failed" else "error"
            ElementTree.SubElement(case, kind, {"message": _clean(one.text)})
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def write(file: Path, name: str, checked: Sequence[Checked]) -> None:
    """Write the file. Raises WriteError: it cannot be written."""
    write_whole(file, xml(name, checked))


def _clean(text: str) -> str:
    """Without characters that XML cannot have."""
    return re.sub(r"[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "�", text)
