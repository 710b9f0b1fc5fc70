# SPDX-License-Identifier: Apache-2.0
"""UDP ports of test frames (RFC 4814 4.5, RFC 2544 C.2.6.4)."""

from __future__ import annotations

from dutperf.model import FieldMode, VaryingField
from dutperf.setup.conditions import (
    RFC2544_DESTINATION_PORT,
    RFC2544_SOURCE_PORT,
    RFC4814_DESTINATION_PORTS,
    RFC4814_SOURCE_PORTS,
)


def source_ports(mode: FieldMode) -> VaryingField:
    """Source ports over the range of RFC 4814 4.5; fixed ones as RFC 2544 C.2.6.4 has them."""
    return _ports(mode, RFC4814_SOURCE_PORTS, RFC2544_SOURCE_PORT)


def destination_ports(mode: FieldMode) -> VaryingField:
    return _ports(mode, RFC4814_DESTINATION_PORTS, RFC2544_DESTINATION_PORT)


def _ports(mode: FieldMode, recommended: tuple[int, int], fixed: int) -> VaryingField:
    low, high = (fixed, fixed) if mode is FieldMode.FIXED else recommended
    return VaryingField(mode=mode, min=low, max=high)
