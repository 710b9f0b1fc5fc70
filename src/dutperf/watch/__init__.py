# SPDX-License-Identifier: Apache-2.0
"""Who else uses the cores of the tester and of a DUT on this machine, and which cores those are."""
