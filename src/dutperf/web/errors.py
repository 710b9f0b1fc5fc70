# SPDX-License-Identifier: Apache-2.0
"""What a request gets that cannot be answered."""

from __future__ import annotations

import re

from dutperf.errors import DutperfError


class Refused(DutperfError):
    """One sentence, and the status of HTTP."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


def without_directories(text: object) -> str:
    """The text, of each absolute path in it the last name only: a page does not tell where files are on the server."""
    return re.sub(r"(?<![\w.~/])/(?:[^/\s'\":;,]+/)+", "", str(text))
