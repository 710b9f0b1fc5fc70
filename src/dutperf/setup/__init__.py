# SPDX-License-Identifier: Apache-2.0
"""What is measured: configuration, conditions, traffic, and the commands of the DUT."""
