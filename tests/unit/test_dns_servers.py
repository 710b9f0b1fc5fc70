# SPDX-License-Identifier: Apache-2.0
"""DNS64 servers of labs without starting any: their configurations, and how their answers are read."""

from __future__ import annotations

import re
import socket
import sys
import threading
from pathlib import Path

import pytest

from dutperf.lab import dns64, dns_counters
from dutperf.lab.addresses import NAT64_PREFIX
from dutperf.lab.dns_servers import SERVERS, DnsServer, Task

BY_IPV4 = Task(Path("/lab"), "2001:2::1", "198.19.0.2", "198.19.0.1", threads=1, cache_mb=64)
BY_IPV6 = Task(Path("/lab"), "2001:2::1", "2001:2:0:8000::2", "2001:2:0:8000::1", threads=3, cache_mb=64)


@pytest.mark.parametrize("task", [BY_IPV4, BY_IPV6], ids=["IPv4", "IPv6"])
@pytest.mark.parametrize("server", SERVERS, ids=lambda server: server.key)
def test_a_configuration_has_the_addresses_and_stays_in_its_directory(server: DnsServer, task: Task) -> None:
    text = "".join(server.files(task).values())
    for needed in (task.listen, task.upstream, task.source, NAT64_PREFIX.partition("/")[0], "dutperf.test"):
        assert needed in text
    argv = server.argv(task)
    assert argv[0] == server.program
    paths = re.findall(r"(?<![\w/*])/[a-z][\w./-]+", " ".join([text, *argv]))
    assert paths
    assert all(path.startswith("/lab") for path in paths), paths


@pytest.mark.parametrize("server", SERVERS, ids=lambda server: server.key)
def test_threads_are_set_or_each_is_a_process(server: DnsServer) -> None:
    shown = "".join([*server.files(BY_IPV6).values(), *server.argv(BY_IPV6)])
    assert server.processes(BY_IPV6) == 3 or re.search(r"threads[:=] ?3\b", shown) or "-n3" in shown


@pytest.mark.skipif(sys.byteorder == "big", reason="the kernel shows addresses in its own byte order")
def test_a_servers_socket_is_found_by_its_address_and_port() -> None:
    assert dns64.listening_address() == "02000120000000000000000001000000:0035 "


def test_nothing_listens_for_a_process_that_has_ended() -> None:
    assert not dns64.is_listening(2**22 + 1, 1)


@pytest.mark.parametrize("parts", [1, 3])
def test_knot_resolvers_answer_is_read_whole(parts: int, tmp_path: Path) -> None:
    path = tmp_path / "control"
    answer = b'> \'[{"answer.cached":3},{"udp":12}]\'\n> '
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                assert connection.recv(100) == b"tojson({})\n"
                size = len(answer) // parts + 1
                for start in range(0, len(answer), size):
                    connection.sendall(answer[start : start + size])

        thread = threading.Thread(target=serve)
        thread.start()
        told = dns_counters._ask_knot(path, "tojson({})")
        thread.join()
    assert told == [{"answer.cached": 3}, {"udp": 12}]
