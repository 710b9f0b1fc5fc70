# SPDX-License-Identifier: Apache-2.0
"""Journal in, documents out. Nothing here runs trials: every document can be made again from the
journal alone."""
