# SPDX-License-Identifier: Apache-2.0
"""One file for each command; the commands that measure are made from the procedures."""
