# SPDX-License-Identifier: Apache-2.0
"""Network cards on the PCI bus that DPDK has, as the kernel shows them under /sys. Never run on a machine with such a card."""

from __future__ import annotations

from pathlib import Path

NETWORK_CLASS = "0x02"
HANDING_OVER = ("vfio-pci", "uio_pci_generic", "igb_uio")
"""The kernel's drivers that leave a device to DPDK."""


def dpdk_ports(root: Path = Path("/")) -> list[str]:
    """PCI addresses of the network cards that are bound to one of these drivers, in the order in which DPDK numbers its ports.

    ``root`` stands in for / where a test makes up a machine.
    """
    cards = [path.parent for path in (root / "sys/bus/pci/devices").glob("*/class") if path.read_text().startswith(NETWORK_CLASS)]
    return sorted(card.name for card in cards if (card / "driver").resolve().name in HANDING_OVER)
