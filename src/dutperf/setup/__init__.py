# SPDX-License-Identifier: Apache-2.0
"""The test setup and the conditions: configuration, conditions, ports."""
