# SPDX-License-Identifier: Apache-2.0
"""A separate program that writes what the kernel shows of the namespaces behind the tester's ports,
as JSON to standard output.

It runs where the engine runs (same prefix, same network namespace), because only there it may look
at the peers. It imports nothing of this package, so that it starts at once. Namespaces are
identified by the inode of their file; cores are in the kernel's own text form.
:mod:`dutperf.watch.dut_discovery` reads its output.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

PROC = Path("/proc")
NAMED = Path("/run/netns")
SYS_NET = Path("/sys/class/net")
CORES_ONLINE = Path("/sys/devices/system/cpu/online")
_CLONE_NEWNS, _CLONE_NEWNET = 0x00020000, 0x40000000
_MS_REC, _MS_PRIVATE = 0x4000, 0x40000
_RTM_NEWLINK, _RTM_GETLINK, _RTM_NEWNSID, _RTM_GETNSID = 16, 18, 88, 90
_NLMSG_DONE, _NLM_F_REQUEST, _NLM_F_DUMP = 3, 1, 0x300
_IFLA_IFNAME, _IFLA_LINK, _IFLA_LINK_NETNSID = 3, 5, 37
_NETNSA_NSID, _NETNSA_FD = 1, 3
Facts = dict[str, Any]


# --- namespaces -----------------------------------------------------------------------------------


def namespace_files() -> dict[int, tuple[Path, str | None]]:
    """Every accessible network namespace: a file of it, and its name where it has one."""
    files: dict[int, tuple[Path, str | None]] = {}
    for path in PROC.glob("[0-9]*/ns/net"):
        with suppress(OSError):
            files.setdefault(path.stat().st_ino, (path, None))
    for path in NAMED.glob("*"):
        with suppress(OSError):
            files[path.stat().st_ino] = (path, path.name)
    return files


def seen_from(inode: int, files: dict[int, tuple[Path, str | None]]) -> list[Facts]:
    """The interfaces of a namespace, read by a child process that enters it."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            _enter(files[inode][0])
            os.write(writing, json.dumps(interfaces(files)).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else []


def _enter(file: Path) -> None:
    """Enter the network namespace, with a private mount of its /sys."""
    kernel = ctypes.CDLL(None, use_errno=True)

    def check(status: int) -> None:
        if status != 0 and ctypes.get_errno() != errno.EBUSY:  # busy: this namespace's /sys is there already
            raise OSError(ctypes.get_errno(), "cannot enter the namespace")

    with file.open("rb") as namespace:
        check(kernel.setns(namespace.fileno(), _CLONE_NEWNET))
    check(kernel.unshare(_CLONE_NEWNS))
    check(kernel.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None))
    check(kernel.mount(b"sysfs", b"/sys", b"sysfs", 0, None))


# --- interfaces -----------------------------------------------------------------------------------


def interfaces(files: dict[int, tuple[Path, str | None]]) -> list[Facts]:
    here = (PROC / "self/ns/net").stat().st_ino
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as kernel:
        links = [_link(body) for body in _request(kernel, _RTM_GETLINK, bytes(16), _RTM_NEWLINK, dump=True)]
        numbers = _numbers_of(kernel, files) if any(link["netnsid"] is not None for link in links) else {}
    for link in links:
        number = link.pop("netnsid")
        link["peer_namespace"] = here if number is None else numbers.get(number)
        link |= _settings(SYS_NET / link["name"])
    return links


def _settings(directory: Path) -> Facts:
    return {
        "rps": [text for path in sorted(directory.glob("queues/rx-*/rps_cpus")) if (text := _text(path))],
        "threaded": (_text(directory / "threaded") or "0") != "0",
        "tun": (directory / "tun_flags").exists(),
    }


def _link(body: bytes) -> Facts:
    """An interface from struct ifinfomsg and its attributes."""
    attributes = dict(_attributes(body[16:]))
    index = struct.unpack_from("=i", body, 4)[0]
    peer, number = attributes.get(_IFLA_LINK), attributes.get(_IFLA_LINK_NETNSID)
    return {
        "name": attributes[_IFLA_IFNAME].rstrip(b"\0").decode(),
        "index": index,
        "peer": struct.unpack("=i", peer)[0] if peer else index,
        "netnsid": struct.unpack("=i", number)[0] if number else None,
    }


def _numbers_of(kernel: socket.socket, files: dict[int, tuple[Path, str | None]]) -> dict[int, int]:
    """The inodes of the namespaces that have a number in this process' namespace (``ip netns
    list-id``), by that number."""
    numbers = {}
    for inode, (path, _) in files.items():
        with suppress(OSError), path.open("rb") as file:
            for body in _request(
                kernel, _RTM_GETNSID, bytes(4) + struct.pack("=HHI", 8, _NETNSA_FD, file.fileno()), _RTM_NEWNSID
            ):
                number = struct.unpack("=i", dict(_attributes(body[4:]))[_NETNSA_NSID])[0]
                numbers[number] = inode
    return numbers


def _request(kernel: socket.socket, kind: int, body: bytes, answer: int, *, dump: bool = False) -> Iterator[bytes]:
    """The bodies of the messages that answer a request by rtnetlink(7)."""
    kernel.send(struct.pack("=IHHII", 16 + len(body), kind, _NLM_F_REQUEST | (_NLM_F_DUMP if dump else 0), 1, 0) + body)
    while True:
        data = kernel.recv(1 << 20)
        while data:
            length, kind_ = struct.unpack_from("=IH", data)
            if kind_ == answer:
                yield data[16:length]
            if kind_ != answer or not dump:
                return  # the end, or an error
            data = data[(length + 3) & ~3 :]


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        yield kind & 0x3FFF, data[4:length]
        data = data[(length + 3) & ~3 :] if length >= 4 else b""


# --- processes ------------------------------------------------------------------------------------


def processes() -> Iterator[Facts]:
    """Every process of this machine: its namespace, the affinity of its threads, its TUN devices."""
    for directory in PROC.glob("[0-9]*"):
        try:
            namespace = (directory / "ns/net").stat().st_ino
        except OSError:
            continue
        allowed = {cores for path in directory.glob("task/*/status") if (cores := _allowed(path))}
        yield {
            "pid": int(directory.name),
            "name": _text(directory / "comm") or "?",
            "namespace": namespace,
            "cores": sorted(allowed),
            "tuns": _tuns(directory),
        }


def _allowed(status: Path) -> str | None:
    return next(
        (
            line.partition(":")[2].strip()
            for line in (_text(status) or "").splitlines()
            if line.startswith("Cpus_allowed_list:")
        ),
        None,
    )


def _tuns(directory: Path) -> list[str]:
    """Names of the TUN and TAP devices that a process has open (the line ``iff:`` of its fdinfo)."""
    names = set()
    with suppress(OSError):
        for fd in (directory / "fd").iterdir():
            with suppress(OSError):
                if fd.readlink() == Path("/dev/net/tun"):
                    text = _text(directory / "fdinfo" / fd.name) or ""
                    names |= {line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("iff:")}
    return sorted(names)


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except OSError:  # in a container process 1 may belong to another user
        return None


def _text(path: Path) -> str | None:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return None


# --- output ---------------------------------------------------------------------------------------


def facts() -> Facts:
    """All facts, as JSON types."""
    files = namespace_files()
    here = (PROC / "self/ns/net").stat().st_ino
    return {
        "tester": here,
        "host": _inode(PROC / "1/ns/net"),
        "usable": sorted(os.sched_getaffinity(0)),
        "online": _text(CORES_ONLINE) or "",
        "namespaces": [
            {"inode": inode, "name": name, "interfaces": seen_from(inode, files)} for inode, (_, name) in files.items()
        ],
        "processes": list(processes()),
    }


if __name__ == "__main__":
    json.dump(facts(), sys.stdout)
