# SPDX-License-Identifier: Apache-2.0
"""Runs measurements: one campaign, a suite of several, and what is needed to start, stop, resume
and wait."""
