# SPDX-License-Identifier: Apache-2.0
"""What MkDocs is told about this project: documents that stand beside the code become pages, and the reference of
commands is made from the commands themselves. Called by MkDocs (mkdocs.yml)."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from dutperf.cli import reference

ROOT = Path(__file__).parents[2]
BESIDE_THE_CODE = {
    "index.md": "README.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "CHANGELOG.md": "CHANGELOG.md",
    "protocol/README.md": "protocol/README.md",
    "protocol/golden/README.md": "protocol/golden/README.md",
    "engine/refdut/README.md": "engine/refdut/README.md",
}
"""Page to document, from the project's root. Links go the same way: what is not listed here is no
page."""
PLACES = {document: page for page, document in BESIDE_THE_CODE.items()} | {"docs/decisions": "decisions/0001-tag.md"}
_LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)(?P<path>[^)#]+)(?P<anchor>#[^)]*)?(?=\))")
_FROM_THE_NETWORK = re.compile(r'<script src="https://[^"]*"></script>')
_ROLE = re.compile(r":(?:class|func|meth|mod|data|attr):<code>~?(?:[\w.]*\.)?(\w+)</code>")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not in docs/."""
    for page, document in BESIDE_THE_CODE.items():
        files.append(File.generated(config, page, content=(ROOT / document).read_text(encoding="utf-8")))
    files.append(File.generated(config, "commands.md", content=commands()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links as they are in the project become links between pages."""
    del config, files
    here = PurePosixPath(page.file.src_uri)
    document = PurePosixPath(BESIDE_THE_CODE.get(str(here), f"docs/{here}"))
    return _LINK.sub(lambda found: _between_pages(found["path"], document, here) + (found["anchor"] or ""), markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Roles of docstrings are plain names."""
    return _ROLE.sub(r"<code>\1</code>", html)


def commands() -> str:
    """The reference of all commands."""
    head = (
        "# Commands\n\nAs `--help` says it, with ranges and environment variables. As manual pages: `make man`."
        " Completion for your shell: `dutperf --install-completion`.\n"
    )
    return "\n".join([head, *(reference.markdown(page) for page in reference.pages())])


def _between_pages(path: str, document: PurePosixPath, here: PurePosixPath) -> str:
    """A link of ``document`` as one of its page, ``here``."""
    target = _normal(document.parent / path)
    page = PLACES.get(target, target.removeprefix("docs/"))
    up = len(here.parts) - 1
    return "../" * up + page


def _normal(path: PurePosixPath) -> str:
    parts: list[str] = []
    for part in path.parts:
        parts = parts[:-1] if part == ".." else [*parts, part]
    return "/".join(parts)


def on_post_page(output: str, **_: Any) -> str:
    """A page asks no network for anything; the theme's shim for searching without a server is not
    in its package."""
    return _FROM_THE_NETWORK.sub("", output)


def on_post_template(output_content: str, **_: Any) -> str:
    """The same for pages that are made of no document."""
    return _FROM_THE_NETWORK.sub("", output_content)
