# SPDX-License-Identifier: Apache-2.0
"""VLANs for a kernel router, also on kernels without VLAN devices: a program at a port's input takes a frame's
tag away and keeps its VLAN as the packet's mark, one at its output gives the frame a tag of that VLAN again. The
kernel's own eBPF does it (bpf(2), tc-bpf(8)); nothing of it is known to the tester."""

from __future__ import annotations

import ctypes
import os
import subprocess
from pathlib import Path
from struct import pack

_BPF = 321  # the system call's number on x86-64
_PROG_LOAD, _OBJ_PIN = 5, 6
_SCHED_CLS = 3
_MARK, _VLAN_PRESENT, _VLAN_TCI = 8, 20, 24  # members of struct __sk_buff
_VLAN_PUSH, _VLAN_POP = 18, 19  # helpers
_8021Q = 0x0081  # 0x8100 as the kernel keeps it


def _instruction(code: int, to: int = 0, from_: int = 0, offset: int = 0, value: int = 0) -> bytes:
    return pack("<BBhi", code, from_ << 4 | to, offset, value)


_KEEP_CONTEXT = _instruction(0xBF, 6, 1)
_CONTEXT = _instruction(0xBF, 1, 6)
_PASS = _instruction(0xB7, 0) + _instruction(0x95)
_DROP = _instruction(0xB7, 0, value=2) + _instruction(0x95)


def _take_tag(*, only: bool) -> bytes:
    """``only``: a frame without a tag is dropped, not passed."""
    return (
        _KEEP_CONTEXT
        + _instruction(0x61, 2, 6, _VLAN_PRESENT)
        + _instruction(0x15, 2, 0, 7)  # no tag: to the end
        + _instruction(0x61, 3, 6, _VLAN_TCI)
        + _instruction(0x57, 3, value=0xFFF)
        + _instruction(0x63, 6, 3, _MARK)
        + _CONTEXT
        + _instruction(0x85, value=_VLAN_POP)
        + _PASS
        + (_DROP if only else _PASS)
    )


def _give_tag(own: int | None) -> bytes:
    """``own``: VLAN of packets without a mark, such as the router's ARP; None: they get no tag."""
    return (
        _KEEP_CONTEXT
        + _instruction(0x61, 3, 6, _MARK)
        + _instruction(0x55, 3, 0, 1 if own is not None else 2)  # a mark
        + (_instruction(0xB7, 3, value=own) if own is not None else _PASS)
        + _CONTEXT
        + _instruction(0xB7, 2, value=_8021Q)
        + _instruction(0x85, value=_VLAN_PUSH)
        + _PASS
    )


def _bpf(command: int, attributes: bytes) -> int:
    """Returns a file descriptor, or 0.

    Raises:
        OSError: the kernel refuses it."""
    libc = ctypes.CDLL(None, use_errno=True)
    made = libc.syscall(_BPF, command, attributes, len(attributes))
    if made < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return int(made)


def _load(program: bytes, pinned: Path) -> None:
    code, licence = ctypes.create_string_buffer(program), ctypes.create_string_buffer(b"Apache-2.0")
    load = pack("<IIQQ", _SCHED_CLS, len(program) // 8, ctypes.addressof(code), ctypes.addressof(licence))
    descriptor = _bpf(_PROG_LOAD, load.ljust(72, b"\0"))
    path = ctypes.create_string_buffer(os.fsencode(pinned))
    _bpf(_OBJ_PIN, pack("<QII", ctypes.addressof(path), descriptor, 0))
    os.close(descriptor)


BOTH_WAYS = ("ingress", "egress")


def attach(
    namespace: str,
    ports: tuple[str, ...],
    folder: Path,
    only: int | None = None,
    ways: tuple[str, ...] = BOTH_WAYS,
) -> None:
    """Gives the ports of a namespace VLANs; ``only``: the one in which its addresses are, otherwise they are in
    those without a tag too. With the ingress alone frames come out without the tag that they had. ``folder``: empty,
    a file system is mounted there for a moment.

    Raises:
        OSError: the kernel has no such programs.
        subprocess.CalledProcessError: ``tc`` does not attach them."""
    subprocess.run(["mount", "-t", "bpf", "bpf", folder], check=True, timeout=10)
    try:
        for name, program in (("ingress", _take_tag(only=only is not None)), ("egress", _give_tag(only))):
            _load(program, folder / name)
        for port in ports:
            tc = ["tc", "-n", namespace]
            subprocess.run([*tc, "qdisc", "add", "dev", port, "clsact"], check=True, timeout=10)
            for way in ways:
                added = [*tc, "filter", "add", "dev", port, way, "bpf", "direct-action", "pinned", str(folder / way)]
                subprocess.run(added, check=True, timeout=10)
    finally:
        subprocess.run(["umount", folder], check=True, timeout=10)
