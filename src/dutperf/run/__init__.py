# SPDX-License-Identifier: Apache-2.0
"""Runs measurements: one campaign or a suite of several, with starting, stopping, resuming and
waiting for the DUT."""
