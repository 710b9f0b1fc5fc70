# SPDX-License-Identifier: Apache-2.0
"""Limits of frame sizes, in bytes with FCS."""

MIN_FRAME_SIZE = 64
"""Smallest Ethernet frame: 42 bytes of Ethernet, IPv4 and UDP headers, 18 bytes of test tag, 4 bytes
of frame check sequence."""
MIN_FRAME_SIZE_IPV6 = 84
"""Smallest test frame with an IPv6 header (RFC 8219 5.1.1): 20 bytes more."""
MAX_FRAME_SIZE = 9216
ETHERNET_OVERHEAD = 18
"""Bytes of a frame outside the MTU: Ethernet header and frame check sequence."""
PREAMBLE_AND_GAP = 20
"""Overhead of each frame on an Ethernet link, in bytes (RFC 8219 appendix A)."""
IPV6_HEADER_EXCESS = 20
"""Difference between an IPv6 frame and its IPv4 translation, in bytes."""
