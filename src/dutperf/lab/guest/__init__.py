# SPDX-License-Identifier: Apache-2.0
"""An emulated machine (QEMU) as a DUT, with a kernel of its own: Debian's, and modules that the host's kernel may
not have. ``packages`` fetches and builds once, ``initramfs`` packs, ``machine`` runs, ``shell`` gives it commands."""
