# SPDX-License-Identifier: Apache-2.0
"""Measurement procedures, one file per clause; what they share with the campaign that conducts them stands in :mod:`dutperf.procedure.bench`."""
