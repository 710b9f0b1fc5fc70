# SPDX-License-Identifier: Apache-2.0
"""Documents made from journals. Nothing here runs trials: every document can be made again from the
journal alone."""
