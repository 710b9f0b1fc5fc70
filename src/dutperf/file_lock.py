# SPDX-License-Identifier: Apache-2.0
"""Locks on files, of which others can see whether they are taken without taking them (fcntl(2), open file description
locks): a look never makes the owner of a file fail. The kernel releases a lock however its process ends.
"""

from __future__ import annotations

import fcntl
import struct

_FORM = "hhqqi4x"
"""``struct flock`` of 64-bit Linux: type, whence, start, length, process."""


def take(descriptor: int) -> bool:
    """Take the lock of a file that is open for writing, until it is closed. Whether it could be had."""
    try:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, struct.pack(_FORM, fcntl.F_WRLCK, 0, 0, 0, 0))
    except BlockingIOError:
        return False
    return True


def wait(descriptor: int) -> None:
    """Take it when whoever has it lets go of it."""
    fcntl.fcntl(descriptor, fcntl.F_OFD_SETLKW, struct.pack(_FORM, fcntl.F_WRLCK, 0, 0, 0, 0))


def is_taken(descriptor: int) -> bool:
    """Whether another one has the lock of this open file. It takes nothing."""
    answer = fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, struct.pack(_FORM, fcntl.F_RDLCK, 0, 0, 0, 0))
    return int(struct.unpack(_FORM, answer)[0]) != fcntl.F_UNLCK
