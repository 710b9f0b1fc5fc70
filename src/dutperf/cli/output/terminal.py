# SPDX-License-Identifier: Apache-2.0
"""Standard output for a person."""

from __future__ import annotations

import errno
import os

from rich.console import Console

from dutperf.cli.calling import as_called


class Output(Console):
    """Rich's console ends the program with status 1 when its reader is gone, which would say that the DUT forwards
    nothing, and takes names between colons for emoji: ``forward:a:`` is a stream."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, emoji=False)

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def output() -> Console:
    return Output()


def line(text: str, style: str | None = None) -> None:
    """Print a sentence; paths in it are not wrapped, and its commands can be copied."""
    output().print(as_called(text), style=style, markup=False, highlight=False, soft_wrap=True)
