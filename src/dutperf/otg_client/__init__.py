# SPDX-License-Identifier: Apache-2.0
"""A server of the Open Traffic Generator API as the tester, in place of the engine."""
