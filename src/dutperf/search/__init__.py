# SPDX-License-Identifier: Apache-2.0
"""Searches for the highest load that passes. They know loads and outcomes only: no packets, no files, no clock.

A search is asked for the next load and told its outcome, until it asks for no more.
"""

from __future__ import annotations

from enum import StrEnum


class Outcome(StrEnum):
    """What came of offering one load."""

    PASSED = "passed"
    FAILED = "failed"
    SILENT = "silent"
    """Failed, and in some direction nothing at all came through."""
    UNMEASURABLE = "unmeasurable"
    """No trial of this load was valid: it says nothing about the DUT."""
