# SPDX-License-Identifier: Apache-2.0
"""dutperf: measures network devices by RFC 8219, 2544, 5180, 4814 and 9004, and proves that each measurement is valid."""

__version__ = "0.1.0"
