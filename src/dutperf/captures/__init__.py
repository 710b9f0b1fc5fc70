# SPDX-License-Identifier: Apache-2.0
"""Packet captures: files of frames with their times, pcap or pcapng."""

from __future__ import annotations

from dutperf.captures.reading import CapturedFrame, CaptureError, frames_of

__all__ = ["CaptureError", "CapturedFrame", "frames_of"]
