# SPDX-License-Identifier: Apache-2.0
"""The tester measures what is known: its own limit without a DUT, and by each procedure a reference
DUT whose properties are set.

``findings`` judges a figure, ``witness`` keeps what the DUT did in each trial, ``checks`` is the
table of what is measured, ``course`` does it, ``floors`` calibrates. What a figure may be off, and
why, is in docs/accuracy.md.
"""
