# SPDX-License-Identifier: Apache-2.0
"""The machine that the tester runs on: its network cards, interfaces and memory, and changes of them on
request.

Only ``access`` touches the machine. ``pci`` and ``interfaces`` read, ``ports`` combines both,
``binding`` and ``memory`` plan steps, ``steps`` carries them out.
"""
