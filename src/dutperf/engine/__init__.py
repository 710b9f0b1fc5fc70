# SPDX-License-Identifier: Apache-2.0
"""The seam between the package and ``dutperf-engine``: its process, and the tester that drives it."""
