# SPDX-License-Identifier: Apache-2.0
"""The machine that the tester runs on: its network cards and interfaces, its memory, and what is
changed of them on request.

``access`` is the only module that touches the machine; ``pci`` and ``interfaces`` read, ``ports``
puts both together, ``binding`` and ``memory`` plan steps, ``steps`` carries them out.
"""
