# SPDX-License-Identifier: Apache-2.0
"""What the trials of a journal say: points, statistics, summary, comparison, deviations from the
RFCs. Nothing here runs a trial."""
