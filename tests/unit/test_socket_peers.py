# SPDX-License-Identifier: Apache-2.0
"""Who is at the other end of a socket: by what ``ss`` says, and by a socket of this test's own."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from dutperf.watch import socket_peers

LISTED = """\
u_str LISTEN 0      128    /run/t/left 100            * 0   users:(("switch",pid=7,fd=9))
u_str ESTAB  0      0      /run/t/left 101            * 201 users:(("switch",pid=7,fd=10))
u_str ESTAB  0      0                * 201            * 101 users:(("engine",pid=5,fd=3))
u_str LISTEN 0      1      /run/t/right 300           * 0   users:(("engine",pid=5,fd=4))
u_str ESTAB  0      0      /run/t/right 301           * 401 users:(("engine",pid=5,fd=6))
u_str ESTAB  0      0                * 401            * 301 users:(("qemu",pid=8,fd=3),("qemu",pid=9,fd=3))
u_str ESTAB  0      0                * 501            * 502
"""
PORTS = [
    ("virtio_user:/run/t/left", (7,)),
    ("virtio_user:/run/t/right,server=1", (8, 9)),
    ("vhost_user:/run/t/right", (8, 9)),
    ("vhost_user:/run/t/left,client=1,queues=1", (7,)),
    ("memif:/run/t/left,id=3", (7,)),
    ("memif:/run/t/right,role=server", (8, 9)),
    ("virtio_user:/run/t/none", ()),
    ("af_packet:eth1", ()),
]


@pytest.mark.parametrize(("port", "pids"), PORTS)
def test_the_other_end_is_known_by_who_made_the_socket(port: str, pids: tuple[int, ...]) -> None:
    assert socket_peers.pids([port], LISTED) == pids


def test_both_ports_may_lead_to_different_processes() -> None:
    assert socket_peers.pids(["virtio_user:/run/t/left", "vhost_user:/run/t/right"], LISTED) == (7, 8, 9)


@pytest.mark.skipif(shutil.which("ss") is None, reason="needs Debian's iproute2")
def test_a_process_that_listens_is_found(tmp_path: Path) -> None:
    path = tmp_path / "switch"
    script = (
        f"import socket; s = socket.socket(socket.AF_UNIX); s.bind({str(path)!r}); s.listen(); print(1, flush=True); c"
        " = s.accept(); input()"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as switch:
        assert switch.stdout is not None
        switch.stdout.readline()
        with socket.socket(socket.AF_UNIX) as own:
            own.connect(str(path))
            assert socket_peers.pids([f"virtio_user:{path}"]) == (switch.pid,)
            assert os.getpid() not in socket_peers.pids([f"memif:{path}"])
        switch.kill()
