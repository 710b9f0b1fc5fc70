# SPDX-License-Identifier: Apache-2.0
"""DNS64 servers (RFC 6147), each with a configuration to be measured by RFC 8219 section 9.

All are set up alike: they resolve one zone, from one authoritative server, by queries over UDP. They ask for whole
names (no minimisation) and for nothing ahead of time. They neither validate nor synthesise answers from
DNSSEC records, keep no expired records, and ask nobody about the root or other zones. What else is set has its
reason beside it; everything else is the server's default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from dutperf.lab.addresses import NAT64_PREFIX
from dutperf.lab.dns_counters import COUNTERS_PORT
from dutperf.lab.netns import run
from dutperf.model.questions import ZONE


@dataclass(frozen=True)
class Task:
    """What a server has to do, and with what: ``upstream`` is the authoritative server's address, ``source`` the
    DUT's own for queries to it."""

    directory: Path
    listen: str
    upstream: str
    source: str
    threads: int
    cache_mb: int


@dataclass(frozen=True)
class DnsServer:
    """One kind of server. ``files`` are its configuration by name, ``argv`` starts a process of it in the foreground,
    as many as ``processes`` says; ``version`` finds its version."""

    key: str
    name: str
    program: str
    package: str
    files: Callable[[Task], Mapping[str, str]]
    argv: Callable[[Task], list[str]]
    version: Callable[[], str]
    processes: Callable[[Task], int] = lambda _task: 1


def log(directory: Path, process: int = 0) -> Path:
    """What a process of a server says."""
    return directory / f"server{process or ''}.log"


def _root_zone() -> str:
    """A root without names: a server that has it as a zone of its own asks no root server."""
    return ". 3600 IN SOA ns. ns. 1 3600 600 86400 3600\n. 3600 IN NS ns.\nns. 3600 IN A 127.0.0.1\n"


def unbound(task: Task) -> dict[str, str]:
    """Unbound's configuration. The message cache has a third of the memory, as its manual proposes."""
    return {
        "unbound.conf": f"""server:
  directory: "{task.directory}"
  chroot: ""
  username: ""
  pidfile: ""
  use-syslog: no
  verbosity: 0
  interface: {task.listen}
  access-control: ::/0 allow
  outgoing-interface: {task.source}
  num-threads: {task.threads}
  # the default is 1,024 queries a thread, less than a slow authoritative server keeps waiting
  outgoing-range: 8192
  num-queries-per-thread: 4096
  msg-cache-size: {task.cache_mb * 1024 // 3}k
  rrset-cache-size: {task.cache_mb * 2048 // 3}k
  module-config: "dns64 iterator"
  dns64-prefix: {NAT64_PREFIX}
  qname-minimisation: no
  prefetch: no
  aggressive-nsec: no
  serve-expired: no
  do-not-query-localhost: no
  extended-statistics: yes
  local-zone: "." refuse
  local-zone: "{ZONE}." transparent
stub-zone:
  name: "{ZONE}"
  stub-addr: {task.upstream}
remote-control:
  control-enable: yes
  control-interface: {task.directory}/unbound.sock
  control-use-cert: no
"""
    }


def bind9(task: Task) -> dict[str, str]:
    """BIND's configuration. It is authoritative for the root, so it needs no root server."""
    source = "query-source-v6" if ":" in task.source else "query-source"
    return {
        "root.zone": _root_zone(),
        "named.conf": f"""options {{
  directory "{task.directory}";
  pid-file none;
  session-keyfile none;
  lock-file none;
  geoip-directory none;
  listen-on {{ none; }};
  listen-on-v6 {{ {task.listen}; }};
  {source} address {task.source};
  allow-query {{ any; }};
  allow-recursion {{ any; }};
  dns64 {NAT64_PREFIX} {{ clients {{ any; }}; }};
  dnssec-validation no;
  qname-minimization off;
  synth-from-dnssec no;
  prefetch 0;
  stale-answer-enable no;
  stale-cache-enable no;
  empty-zones-enable no;
  notify no;
  max-cache-size {task.cache_mb}m;
  // the default, 1,000, is less than a slow authoritative server keeps waiting
  recursive-clients 10000;
}};
logging {{
  channel lab {{ file "{log(task.directory)}"; severity notice; print-time yes; }};
  category default {{ lab; }};
  // a line for each query that failed takes longer than the query
  category lame-servers {{ null; }};
  category query-errors {{ null; }};
}};
controls {{ }};
statistics-channels {{ inet 127.0.0.1 port {COUNTERS_PORT} allow {{ 127.0.0.1; }}; }};
zone "." {{ type primary; file "root.zone"; }};
zone "{ZONE}" {{ type static-stub; server-addresses {{ {task.upstream}; }}; }};
""",
    }


def knot(task: Task) -> dict[str, str]:
    """Knot Resolver's configuration.

    * Its DNS64 does not work with ``policy.STUB`` (the query for the A record goes to the root), so it forwards.
    * After some timeouts in a row it asks by TCP only. An authoritative server without TCP is then lost until
      Knot forgets what it knows of it, so the cache is cleared when all queries fail and none is sent.
    """
    unwanted = ("priming", "ta_update", "ta_signal_query", "ta_sentinel", "detect_time_skew", "detect_time_jump")
    return {
        "kresd.conf": f"""log_target('stderr')
trust_anchors.remove('.')
for _, name in ipairs({{{", ".join(f"'{name}'" for name in unwanted)}}}) do
  modules.unload(name)
end
modules = {{ 'stats', dns64 = {{ prefix = '{NAT64_PREFIX.partition("/")[0]}' }} }}
cache.open({task.cache_mb} * MB, 'lmdb://{task.directory}/cache')
net.outgoing_v{6 if ":" in task.source else 4}('{task.source}')
net.listen('{task.listen}', 53, {{ kind = 'dns' }})
policy.add(policy.suffix(policy.FORWARD('{task.upstream}'), policy.todnames({{ '{ZONE}.' }})))
policy.add(policy.all(policy.REFUSE))

local sent, failed = 0, 0
event.recurrent(200, function ()
  local now_sent, now_failed = worker.stats().udp, stats.get('answer.servfail')
  if now_failed > failed and now_sent == sent then cache.clear() end
  sent, failed = now_sent, now_failed
end)
"""
    }


def pdns(task: Task) -> dict[str, str]:
    """The configuration of PowerDNS Recursor.

    * ``auth-zones``: without root servers it would ask for them again and again.
    * ``server-down-max-fails``: after 64 timeouts in a row it would not ask the only server for a minute, so that one
      trial beyond the DUT's capacity spoilt the next ones.
    * ``pdns-distributes-queries``, ``reuseport``: each thread takes queries from a socket of its own, as from
      version 4.9 on; otherwise a further thread hands all queries out.
    * An eighth of ``max-cache-entries`` is for empty answers, and each name without a AAAA record has one.
    """
    settings = {
        "local-address": task.listen,
        "local-port": 53,
        "query-local-address": task.source,
        "allow-from": "::/0",
        "dont-query": "",
        "auth-zones": f".={task.directory}/root.zone",
        "forward-zones": f"{ZONE}={task.upstream}",
        "hint-file": "no",
        "security-poll-suffix": "",
        "dns64-prefix": NAT64_PREFIX,
        "dnssec": "off",
        "qname-minimization": "no",
        "aggressive-nsec-cache-size": 0,
        "server-down-max-fails": 0,
        "threads": task.threads,
        "pdns-distributes-queries": "no",
        "reuseport": "yes",
        "max-cache-entries": task.cache_mb * ANSWERS_PER_MB * 8,
        "max-packetcache-entries": task.cache_mb * ANSWERS_PER_MB,
        "socket-dir": task.directory,
        "write-pid": "no",
        "disable-syslog": "yes",
        "statistics-interval": 0,
        "quiet": "yes",
    }
    text = "".join(f"{name}={value}\n" for name, value in settings.items())
    return {"recursor.conf": text, "root.zone": _root_zone()}


ANSWERS_PER_MB = 500
"""PowerDNS counts entries instead of bytes. A name takes 1.5 KB in its caches, and some room is left."""

SERVERS = (
    DnsServer(
        key="unbound",
        name="Unbound",
        program="unbound",
        package="unbound",
        files=unbound,
        argv=lambda task: ["unbound", "-d", "-p", "-c", f"{task.directory}/unbound.conf"],
        version=lambda: run(["unbound", "-V"]).split()[1],
    ),
    DnsServer(
        key="bind9",
        name="BIND",
        program="named",
        package="bind9",
        files=bind9,
        argv=lambda task: [
            *("named", "-f", "-L", str(log(task.directory)), "-n", str(task.threads)),
            *("-c", f"{task.directory}/named.conf"),
        ],  # without -L it would tell syslog what is wrong
        version=lambda: run(["named", "-v"]).split()[1].partition("-")[0],
    ),
    DnsServer(
        key="knot",
        name="Knot Resolver",
        program="kresd",
        package="knot-resolver",
        files=knot,
        argv=lambda task: ["kresd", "-n", "-c", f"{task.directory}/kresd.conf", str(task.directory)],
        version=lambda: run(["kresd", "-V"]).split()[-1],
        processes=lambda task: task.threads,  # a process has one thread; all share the cache
    ),
    DnsServer(
        key="pdns",
        name="PowerDNS Recursor",
        program="pdns_recursor",
        package="pdns-recursor",
        files=pdns,
        argv=lambda task: ["pdns_recursor", f"--config-dir={task.directory}"],
        version=lambda: run(["sh", "-c", "pdns_recursor --version 2>&1"]).partition(" Recursor ")[2].split()[0],
    ),
)
