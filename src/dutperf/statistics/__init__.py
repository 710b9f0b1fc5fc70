# SPDX-License-Identifier: Apache-2.0
"""Medians and intervals, rank tests, and when to stop repeating."""
