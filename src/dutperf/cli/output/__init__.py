# SPDX-License-Identifier: Apache-2.0
"""What a person or a monitoring system sees while a command runs, and what it prints at its end."""
