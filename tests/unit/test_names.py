# SPDX-License-Identifier: Apache-2.0
"""A public name means one thing in the whole package."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import dutperf

# fmt: off
TWICE = frozenset({
    "Address", "AtRate", "Bench", "Check", "Checked", "Cores", "Delays", "Facts", "Figure",
    "Figures", "Finding", "Format", "Group", "Interface", "Key", "Kind", "LabOptions", "Load", "Loss", "Machine",
    "NatOptions", "Offered", "Option", "Outcome", "Part", "Place", "Planned", "Ports", "Quantiles",
    "Reading", "Record", "Recorded", "Repetitions", "Results", "RouterOptions", "Row", "Rule", "Run", "Series",
    "Side", "State", "Step", "Times", "Value", "Values", "Verdict", "Wait", "Watch",
})
# fmt: on
"""Names that still have several definitions. It only gets shorter."""
ROOT = Path(dutperf.__file__).parent


def defined(module: ast.Module) -> Iterator[str]:
    """Public classes and types at the top of a module, also those for type checkers alone."""
    for node in module.body:
        body = node.body if isinstance(node, ast.If) else [node]
        for one in body:
            if isinstance(one, ast.ClassDef) and not one.name.startswith("_"):
                yield one.name
            targets = (
                one.targets if isinstance(one, ast.Assign) else [one.target] if isinstance(one, ast.AnnAssign) else []
            )
            for target in targets:
                if isinstance(target, ast.Name) and target.id[:1].isupper() and not target.id.isupper():
                    yield target.id


def test_no_public_name_has_two_definitions() -> None:
    places = defaultdict[str, set[str]](set)
    for path in sorted(ROOT.rglob("*.py")):
        if "cli/commands" not in str(path):  # there an alias is an option of one command
            for name in defined(ast.parse(path.read_text(encoding="utf-8"))):
                places[name].add(str(path.relative_to(ROOT)))
    several = {name: where for name, where in places.items() if len(where) > 1}
    assert not {name: where for name, where in several.items() if name not in TWICE}
    assert not TWICE - several.keys(), "these are unique now: take them off the list"
