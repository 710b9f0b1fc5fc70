# SPDX-License-Identifier: Apache-2.0
"""The code in the project's documents: blocks, and the commands that stand in a sentence."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
_BLOCK = re.compile(r"^(?P<indent> *)```(?P<language>\w*)[^\n]*\n(?P<text>.*?)^ *```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block; ``language`` is empty where it is a drawing, or what a program said."""

    document: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.document}:{self.line}"

    def commands(self) -> list[str]:
        """Of a block of the shell: each command in one line, without comments."""
        joined = self.text.replace("\\\n", " ")
        lines = (re.sub(r"(^|\s)#.*", "", line).strip() for line in joined.splitlines())
        return [" ".join(line.split()) for line in lines if line]


@cache
def documents() -> tuple[str, ...]:
    """Paths of all Markdown documents of the project, from its root."""
    said = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return tuple(sorted(said.stdout.split()))


def blocks(document: str) -> list[Block]:
    """Its fenced blocks, in order."""
    text = (ROOT / document).read_text(encoding="utf-8")
    return [
        Block(document, text[: found.start()].count("\n") + 1, found["language"], found["text"])
        for found in _BLOCK.finditer(text)
    ]


def all_blocks(*languages: str) -> list[Block]:
    """Those of all documents in these languages."""
    return [block for document in documents() for block in blocks(document) if block.language in languages]


def sentences_commands(document: str) -> list[str]:
    """``dutperf …`` as it stands in sentences and tables; what has an ellipsis is a part of one."""
    text = _BLOCK.sub("", (ROOT / document).read_text(encoding="utf-8"))
    spans = (" ".join(span.split()) for span in re.findall(r"`(dutperf [a-z-][^`]*)`", text))
    return [span for span in spans if "…" not in span]
