# SPDX-License-Identifier: Apache-2.0
"""The error of labs."""

from dutperf.errors import DutperfError


class LabError(DutperfError):
    """A lab cannot be built; the message is one sentence with the reason and, if possible, a remedy."""
