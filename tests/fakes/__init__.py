# SPDX-License-Identifier: Apache-2.0
"""Second implementations of interfaces, for tests."""
