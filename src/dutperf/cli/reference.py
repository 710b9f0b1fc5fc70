# SPDX-License-Identifier: Apache-2.0
"""Generates the reference of all commands: pages for the documentation, and manual pages.

``python -m dutperf.cli.reference DIR`` writes the manual pages into ``DIR`` (``make man``).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import typer

from dutperf.cli import EXIT_STATUS, app, examples
from dutperf.cli.help_screen import ARGUMENTS, COMMANDS, OPTIONS, Listed, listed
from dutperf.version import __version__

SECTION = 1
"""Section of the manual: commands."""


@dataclass(frozen=True)
class Page:
    """One command, or a group of them."""

    words: tuple[str, ...]
    """``("dutperf", "lab", "up")``."""
    text: str
    """Description; its first paragraph is one sentence."""
    usage: str
    entries: tuple[Listed, ...]
    """Arguments, options and commands."""

    @property
    def name(self) -> str:
        """Name of its manual page: ``dutperf-lab-up``."""
        return "-".join(self.words)

    @property
    def summary(self) -> str:
        """One sentence."""
        return self.text.split("\n\n")[0].replace("\n", " ")

    def of(self, kind: str) -> tuple[Listed, ...]:
        return tuple(one for one in self.entries if one.kind == kind)

    @property
    def example(self) -> str | None:
        command = " ".join(self.words[1:])
        return examples.line(command) if command else None


def pages() -> Iterator[Page]:
    """All commands, each group before its members."""
    yield from _pages(typer.main.get_command(app), ("dutperf",), None)


def markdown(page: Page) -> str:
    """A section of the documentation."""
    parts = [f"## {' '.join(page.words)}", page.text, f"```text\n{page.usage}\n```"]
    if page.example is not None:
        parts.append(f"```sh\n{page.example}\n```")
    parts += [
        f"**{title}**\n\n" + "\n".join(f"* `{one.name}`: {_inline(one.complete)}" for one in entries)
        for title, entries in groupby(page.entries, lambda one: one.panel)
    ]
    return "\n\n".join(parts) + "\n"


def man(page: Page) -> str:
    """A manual page, for groff's macros ``man``."""
    head = f'.TH {_roff(page.name.upper())} {SECTION} "" "dutperf {__version__}" "dutperf"'
    sections = [
        ("NAME", f"{_roff(page.name)} \\- {_roff(page.summary)}"),
        ("SYNOPSIS", _roff(page.usage)),
        ("DESCRIPTION", "\n.PP\n".join(_roff(paragraph.replace("\n", " ")) for paragraph in page.text.split("\n\n"))),
        *((kind.upper(), _tagged(page.of(kind))) for kind in (ARGUMENTS, OPTIONS, COMMANDS)),
        ("EXAMPLE", f".EX\n{_roff(page.example)}\n.EE" if page.example else ""),
        ("EXIT STATUS", _roff(EXIT_STATUS.removeprefix("Exit status: "))),
        ("SEE ALSO", _see_also(page)),
    ]
    return "\n".join([head, *(f".SH {title}\n{text}" for title, text in sections if text)]) + "\n"


def write_man(directory: Path) -> list[Path]:
    """Write all manual pages into ``directory``; returns their paths."""
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    for page in pages():
        path = directory / f"{page.name}.{SECTION}"
        path.write_text(man(page), encoding="utf-8")
        written.append(path)
    return written


def _pages(command: Any, words: tuple[str, ...], parent: Any) -> Iterator[Page]:
    context = command.context_class(command, info_name=words[-1], parent=parent)
    yield Page(
        words=words,
        text=(command.help or "").strip(),
        usage=" ".join([" ".join(words), *command.collect_usage_pieces(context)]),
        entries=listed(command, context),
    )
    for name, one in getattr(command, "commands", {}).items():
        yield from _pages(one, (*words, name), context)


def _inline(text: str) -> str:
    """``text`` with Markdown's special characters escaped."""
    return "".join(f"\\{character}" if character in "*_[]<>" else character for character in text)


def _tagged(entries: Sequence[Listed]) -> str:
    """With headings, where there are several panels."""
    panels = [(panel, list(each)) for panel, each in groupby(entries, lambda one: one.panel)]
    return "\n".join(
        (f".SS {_roff(panel)}\n" if len(panels) > 1 else "")
        + "\n".join(f".TP\n.B {_roff(one.name)}\n{_roff(one.complete) or '.'}" for one in each)
        for panel, each in panels
    )


def _roff(text: str) -> str:
    """Plain text for groff: hyphens that can be copied, and no escapes or requests."""
    escaped = (
        text.replace("\\", "\\(rs")
        .replace("-", "\\-")
        .replace("'", "\\(aq")
        .replace("^", "\\(ha")
        .replace("~", "\\(ti")
    )
    return "\n".join(f"\\&{line}" if line.startswith((".", "'")) else line for line in escaped.splitlines())


def _see_also(page: Page) -> str:
    others = [(*page.words, entry.name) for entry in page.of(COMMANDS)] or [page.words[:-1]]
    return ",\n".join(f".BR {_roff('-'.join(words))} ({SECTION})" for words in others).replace(",\n", " ,\n")


if __name__ == "__main__":
    for file in write_man(Path(sys.argv[1])):
        typer.echo(file)
