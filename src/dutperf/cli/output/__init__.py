# SPDX-License-Identifier: Apache-2.0
"""Progress of a command, for a person or a monitoring system, and its output at the end."""
