# SPDX-License-Identifier: Apache-2.0
"""The script of a reset: it stops the DUT of a lab, and starts it again also where it is ended early."""

from __future__ import annotations

import shlex


def script(stop: str, duration_s: float, start: str) -> str:
    """To run by ``sh -e``. ``start`` runs where ``stop`` failed, too."""
    return f"trap {shlex.quote(start)} EXIT; trap 'exit 1' TERM; {stop}; sleep {duration_s:g} & wait $!"
