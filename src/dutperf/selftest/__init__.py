# SPDX-License-Identifier: Apache-2.0
"""The self-test: the tester's own limit without a DUT, and each procedure on a reference DUT with known
properties.

``findings`` judges a figure, ``ground_truth`` records the DUT's counters of each trial, ``checks`` is
the table of measurements, ``progress`` runs them, ``floors`` calibrates. docs/accuracy.md derives the
errors of the figures.
"""
