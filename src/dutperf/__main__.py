# SPDX-License-Identifier: Apache-2.0
"""``python -m dutperf`` runs ``dutperf``."""

from dutperf.start import dutperf

dutperf()
