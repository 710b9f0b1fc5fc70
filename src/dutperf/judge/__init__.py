# SPDX-License-Identifier: Apache-2.0
"""Whether a trial proves what it seems to show: the rules, and their bounds, on the counts alone."""
