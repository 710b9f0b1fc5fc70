# SPDX-License-Identifier: Apache-2.0
"""What a request gets that cannot be answered."""

from __future__ import annotations

from dutperf.errors import DutperfError


class Refused(DutperfError):
    """One sentence, and the status of HTTP."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status
