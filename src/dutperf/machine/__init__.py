# SPDX-License-Identifier: Apache-2.0
"""The machine that the tester runs on: its network cards, interfaces and memory, and changes of them on
request.

Of cards and memory only ``access`` touches the machine. ``pci`` and ``interfaces`` read, ``ports`` combines both,
``binding`` and ``memory`` plan steps, ``steps`` carries them out. ``host`` and ``doctor`` say what it is and what it
lacks, ``child`` and ``signals`` start and end programs on it.
"""
