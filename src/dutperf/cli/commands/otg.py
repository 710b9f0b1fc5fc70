# SPDX-License-Identifier: Apache-2.0
"""``dutperf otg``: a server of the Open Traffic Generator API."""

from __future__ import annotations

import os
import secrets
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dutperf import dut
from dutperf.cli import options
from dutperf.cli.errors import reported, say
from dutperf.cli.listening import LOOPBACK, ListenAddress, TcpPort, check_token, listen, shown
from dutperf.cli.output import terminal
from dutperf.errors import require
from dutperf.invocation import command_line
from dutperf.run.testbench import Source, in_place
from dutperf.setup import configuration
from dutperf.setup.configuration import NO_PORT, ConfigError, EngineSettings

if TYPE_CHECKING:
    from dutperf.otg.generator import Generator
    from dutperf.otg.trial_log import TrialLog
    from dutperf.web.access import Rules

Ports = Annotated[
    list[str] | None,
    typer.Option(
        "--ports",
        metavar="NAME=PORT",
        help="A port and its name for clients, as eth1=af_packet:eth1; repeatable.",
    ),
]
Netns = Annotated[str | None, typer.Option("--netns", metavar="NAME", help="Network namespace of these ports.")]
Token = Annotated[
    str | None,
    typer.Option(
        "--token",
        metavar="TEXT",
        envvar="DUTPERF_TOKEN",
        help="Clients elsewhere than on loopback need it. Default: a new one.",
    ),
]
Plain = Annotated[bool, typer.Option("--plain", help="HTTP without TLS.")]
Certificate = Annotated[
    Path | None, typer.Option("--certificate", metavar="FILE", help="Of TLS (PEM). Default: a new one.")
]
Key = Annotated[Path | None, typer.Option("--key", metavar="FILE", help="The certificate's key (PEM).")]
GrpcPort = Annotated[
    int | None,
    typer.Option(
        "--grpc-port",
        metavar="N",
        min=0,
        max=65535,
        help="Serve gRPC too, on this port, such as 40051 (0: any).",
    ),
]
Drain = Annotated[
    float,
    typer.Option("--drain", metavar="S", min=0, max=60, help="How long frames may be on their way when flows end."),
]


_GOODBYE_S = 1
"""For clients to end their connections, which they keep."""


def otg(
    ports: Ports = None,
    netns: Netns = None,
    lab: options.LabName = None,
    lab_option: options.LabOptions = None,
    config_file: options.ConfigFile = None,
    port: TcpPort = 8443,
    grpc_port: GrpcPort = None,
    address: ListenAddress = LOOPBACK,
    plain: Plain = False,
    certificate: Certificate = None,
    key: Key = None,
    token: Token = None,
    drain: Drain = 0.5,
    out: options.Out = None,
) -> None:
    """Serve the Open Traffic Generator API, for programs such as snappi."""
    with reported():
        os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")  # children exec at once; before snappi imports it
        for library in ("snappi", "starlette", "uvicorn", "cryptography"):
            require(library, "otg", "dutperf otg")
        if grpc_port is not None:
            require("grpc", "otg", "--grpc-port")
        check_token(token)
        given = located_ports(ports or [])
        _check(given, netns, plain=plain, has_source=bool(lab or config_file), files=(certificate, key))
        files = None if certificate is None or key is None else (certificate, key)
        source = None if given else Source.of(lab, options.lab_options(lab_option), config_file)
        with _ports(given, netns, source) as offered, _log(out, offered, drain) as log:
            where = _Where(address, port, grpc_port, token, files, plain)
            _serve(offered, where, drain, log)


def _check(
    given: Mapping[str, str],
    netns: str | None,
    *,
    plain: bool,
    has_source: bool,
    files: tuple[Path | None, Path | None],
) -> None:
    """Raises ConfigError where options do not go together, or a file is not there."""
    certificate, key = files
    if plain and (certificate or key):
        raise ConfigError("does not go with --plain", "--certificate")
    if (certificate is None) != (key is None):
        raise ConfigError("certificate and key need each other", "--key" if certificate else "--certificate")
    for option, file in (("--certificate", certificate), ("--key", key)):
        if file is not None and not file.is_file():
            raise ConfigError(f"there is no file {file}", option)
    if given and has_source:
        raise ConfigError("does not go with a lab or a configuration, which has ports", "--ports")
    if not given and not has_source:
        raise ConfigError("there are no ports: give some, a lab (--lab) or a configuration (--config)", "--ports")
    if netns and not given:
        raise ConfigError("is the namespace of --ports: give some", "--netns")


def located_ports(given: Sequence[str]) -> dict[str, str]:
    """Ports by locations, of the texts of ``--ports``. Raises ConfigError where one has another form."""
    located: dict[str, str] = {}
    for one in given:
        name, equals, spec = one.rpartition("=") if "," not in one else one.partition("=")
        if not equals or not name or not spec:
            raise ConfigError(f"'{one}' is not NAME=PORT, such as eth1=af_packet:eth1", "--ports")
        if name in located:
            raise ConfigError(f"{name} is given twice", "--ports")
        located[name] = spec
    return located


@dataclass(frozen=True)
class _Offered:
    """Ports that clients may use."""

    located: Mapping[str, str]
    """By the names that they have for clients."""
    engine: EngineSettings
    plan: Mapping[str, Any]
    """What the plan of a run says of them: JSON types."""


@contextmanager
def _ports(given: Mapping[str, str], netns: str | None, source: Source | None) -> Iterator[_Offered]:
    if source is None:
        within = {} if netns is None else {"netns": netns}
        yield _Offered(given, EngineSettings(netns=netns), {"source": {"ports": dict(given), **within}})
        return
    with in_place(source) as setup:
        located = {name: side.port for name, side in setup.sides().items() if side is not NO_PORT}
        identity = dut.of_setup(setup).identity()
        of_setup = {"source": source.as_json(setup), "config": configuration.as_json(setup), "dut": identity}
        yield _Offered(located, setup.engine, of_setup)


@contextmanager
def _log(out: Path | None, offered: _Offered, drain_s: float) -> Iterator[TrialLog]:
    """Of the trials: in a directory, if there is one, with the results at the end."""
    from dutperf.otg import trial_log

    if out is None:
        yield trial_log.TrialLog()
        return
    invocation = ("dutperf", *command_line(sys.argv[1:]))
    log = None
    try:
        with trial_log.in_directory(out, trial_log.plan_event(drain_s, invocation=invocation, **offered.plan)) as log:
            yield log
    finally:
        if log is not None and log.summary is not None:
            from dutperf.cli.commands.measure import show_result

            show_result(log.summary, out, as_json=False, verbose=False)


@dataclass(frozen=True)
class _Where:
    """Where and to whom the server answers."""

    address: str
    port: int
    grpc_port: int | None
    token: str | None
    files: tuple[Path, Path] | None
    """Certificate and key; None: new ones."""
    is_plain: bool


def _serve(offered: _Offered, where: _Where, drain_s: float, log: TrialLog) -> None:
    import uvicorn

    from dutperf.engine.factory import engine_on
    from dutperf.otg import app, certificate, tls
    from dutperf.otg.generator import Generator
    from dutperf.web.access import Rules

    rules = Rules(where.token or secrets.token_urlsafe(24), where.address)
    listening = listen(where.address, where.port)
    generator = Generator(offered.located, offered.engine, engine_on, drain_s, log)
    with tempfile.TemporaryDirectory(prefix="dutperf-otg-") as directory, listening, closing(generator):
        files = None if where.is_plain else where.files or certificate.generate(Path(directory), where.address)
        configured = uvicorn.Config(
            app.make(generator, rules), log_level="warning", lifespan="off", timeout_graceful_shutdown=_GOODBYE_S
        )
        configured.load()
        configured.ssl = None if files is None else tls.server_context(*files)
        base = f"{'http' if files is None else 'https'}://{shown(where.address)}:{listening.getsockname()[1]}"
        with _rpc(generator, rules, where, files) as rpc_port:
            terminal.line(base if rules.is_local else f"{base}/{rules.token}")
            if rpc_port is not None:
                terminal.line(f"gRPC: {shown(where.address)}:{rpc_port}")
            say(f"ports by their locations: {', '.join(offered.located)}; Ctrl-C ends the server and its traffic")
            uvicorn.Server(configured).run(sockets=[listening])


@contextmanager
def _rpc(generator: Generator, rules: Rules, where: _Where, files: tuple[Path, Path] | None) -> Iterator[int | None]:
    """Serve gRPC, if it is asked for; the port."""
    if where.grpc_port is None:
        yield None
        return
    import grpc

    from dutperf.otg import rpc

    with listen(where.address, where.grpc_port, "--grpc-port"):
        pass  # says why, where that is not possible
    made, at = rpc.make(generator, rules), f"{shown(where.address)}:{where.grpc_port}"
    if files is None or (rules.is_local and where.files is None):  # clients use no TLS unless they have a certificate
        port = made.add_insecure_port(at)
    else:
        certificate, key = (file.read_bytes() for file in files)
        port = made.add_secure_port(at, grpc.ssl_server_credentials([(key, certificate)]))
    made.start()
    try:
        yield port
    finally:
        made.stop(_GOODBYE_S).wait()
