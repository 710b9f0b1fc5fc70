# SPDX-License-Identifier: Apache-2.0
"""The one error of labs."""

from dutperf.errors import DutperfError


class LabError(DutperfError):
    """A lab cannot be had; the message is one sentence that says why and, where there is a remedy,
    which."""
