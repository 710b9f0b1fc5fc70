# SPDX-License-Identifier: Apache-2.0
"""Medians and confidence intervals, rank tests, and stopping rules for repetitions."""
