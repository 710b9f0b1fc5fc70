# SPDX-License-Identifier: Apache-2.0
"""The Open Traffic Generator API over gRPC, asked by snappi's own transport; the tester is simulated."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
import snappi
from google.protobuf.empty_pb2 import Empty
from snappi import otg_pb2_grpc

from command_line import dutperf
from dutperf.journal import Finding, read
from dutperf.otg import certificate, rpc, server, trial_log
from dutperf.otg.generator import Generator
from dutperf.otg.model import messages
from dutperf.otg.trial_log import TrialLog
from dutperf.results.by_clients import ConfigurationFinding
from dutperf.setup.configuration import EngineSettings
from dutperf.web.access import Rules
from otg_messages import LOCATED, TOKEN, Opened, configured, flow, opening
from snappi_calls import metrics, sent

IP = {"name": "ip1", "address": "198.18.0.2", "gateway": "198.18.0.1"}
ETHERNET = {"name": "e1", "mac": "02:00:00:00:00:01", "connection": {"choice": "port_name", "port_name": "p1"}}
DEVICE = {"name": "d1", "ethernets": [ETHERNET | {"ipv4_addresses": [IP]}]}
UNKNOWN_FIELD = b"\xba\x3e\x01x"
"""Number 999, of a text."""


@contextmanager
def serving(
    address: str = "127.0.0.1", files: tuple[Path, Path] | None = None, log: TrialLog | None = None, **members: Any
) -> Iterator[str]:
    """A server that believes to listen on ``address``; where it does."""
    generator = Generator(LOCATED, EngineSettings(), opening(Opened, **members), drain_s=0.0, log=log)
    made = rpc.make(generator, Rules(TOKEN, address))
    if files is None:
        port = made.add_insecure_port("127.0.0.1:0")
    else:
        credentials = grpc.ssl_server_credentials([(files[1].read_bytes(), files[0].read_bytes())])
        port = made.add_secure_port("127.0.0.1:0", credentials)
    made.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        made.stop(0).wait()
        generator.close()


@pytest.fixture
def address() -> Iterator[str]:
    with serving() as one:
        yield one


@contextmanager
def stub_of(address: str) -> Iterator[Any]:
    with grpc.insecure_channel(address) as channel:
        yield otg_pb2_grpc.OpenapiStub(channel)


def api_of(address: str) -> Any:
    return snappi.api(location=address, transport=snappi.Transport.GRPC)


PATIENCE_S = 10


def test_every_operation_is_served() -> None:
    names = {method.name.removeprefix("stream") for method in rpc.SERVICE.methods}
    assert names == {one.name for one in server.OPERATIONS}


@pytest.mark.parametrize("streaming", [False, True])
def test_snappi_configures_sends_counts_and_asks(address: str, streaming: bool) -> None:
    api = api_of(address)
    api.enable_grpc_streaming = streaming
    if streaming:
        api._chunk_size = 100  # bytes; its setter knows MiB alone
    wanted = api.config().deserialize(configured(flow(), devices=[DEVICE]))
    assert list(api.set_config(wanted).warnings) == []
    assert api.get_config().serialize() == wanted.serialize()
    found = sent(api, PATIENCE_S)
    assert {name: (one.frames_tx, one.frames_rx, one.port_rx) for name, one in found.items()} == {
        "f1": (100, 100, "p2")
    }
    request = api.metrics_request()
    request.port.port_names = ["p2"]
    assert [one.link for one in api.get_metrics(request).port_metrics] == ["up"]
    states = api.states_request()
    states.ipv4_neighbors.ethernet_names = ["e1"]
    [neighbour] = api.get_states(states).ipv4_neighbors
    assert neighbour.link_layer_address == "02:00:00:00:00:aa"
    assert api.get_version().api_spec_version == ">=1.0.0"


def test_snappi_changes_the_flows(address: str) -> None:
    api = api_of(address)
    api.set_config(api.config().deserialize(configured(flow())))
    added = api.config_append()
    added.config_append_list.add().flows.deserialize([flow(name="f2")])
    assert list(api.append_config(added).warnings) == []
    update = api.config_update()
    update.flows.property_names = ["rate"]
    update.flows.flows.deserialize([flow(name="f2", rate={"choice": "pps", "pps": 7})])
    assert list(api.update_config(update).warnings) == []
    deleted = api.config_delete()
    deleted.config_delete_list.add().flows = ["f1"]
    assert list(api.delete_config(deleted).warnings) == []
    assert [(one.name, one.rate.pps) for one in api.get_config().flows] == [("f2", 7)]


def test_several_clients_control_the_same_flows(address: str) -> None:
    first, second = api_of(address), api_of(address)
    first.set_config(first.config().deserialize(configured(flow())))
    sent(second, PATIENCE_S)
    counts: list[int] = []
    each = [threading.Thread(target=lambda: counts.append(metrics(api_of(address))["f1"].frames_rx)) for _ in range(20)]
    for one in each:
        one.start()
    for one in each:
        one.join()
    assert counts == [100] * 20


def refused(call: Any, *args: Any) -> Any:
    """The model's error, as snappi reads it, which raises it in an exception without a class of its own."""
    with pytest.raises(Exception) as caught:  # noqa: PT011
        call(*args)
    error = caught.value.args[0]
    assert isinstance(error, snappi.Error)
    return error


def test_an_error_is_the_models_with_the_code_of_grpc(address: str) -> None:
    api = api_of(address)
    error = refused(api.set_config, api.config().deserialize(configured(flow(size={"choice": "fixed", "fixed": 60}))))
    assert (error.code, error.kind) == (grpc.StatusCode.INVALID_ARGUMENT.value[0], "validation")
    assert error.errors[0].startswith("flows[0].size: 60 bytes are too few for f1")
    request = api.metrics_request()
    request.bgpv4.peer_names = []
    error = refused(api.get_metrics, request)
    assert (error.code, error.errors) == (grpc.StatusCode.UNIMPLEMENTED.value[0], ["bgpv4 is not covered"])


@pytest.mark.parametrize("name", ["€" * 3000, "\0%" * 3000])
def test_an_error_fits_into_a_header(address: str, name: str) -> None:
    """A client takes 8 KiB, in which other bytes than ASCII's are written as three."""
    api = api_of(address)
    each = [flow(name=f"{number}{name}", size={"choice": "fixed", "fixed": 60}) for number in range(30)]
    error = refused(api.set_config, api.config().deserialize(configured(*each)))
    assert error.errors[0].startswith("flows[0].size: 60 bytes are too few for 0")


@pytest.mark.parametrize(
    ("place", "data"),
    [
        ("the message", UNKNOWN_FIELD),
        ("ports[0]", messages.Config(ports=[messages.Port.FromString(UNKNOWN_FIELD)]).SerializeToString()),
    ],
)
def test_a_field_of_another_model_is_refused(address: str, place: str, data: bytes) -> None:
    wanted = messages.SetConfigRequest(config=messages.Config.FromString(data))
    pieces = [messages.Data(datum=data[:3]), messages.Data(datum=data[3:])]
    with stub_of(address) as stub:
        for call, request in ((stub.SetConfig, wanted), (stub.streamSetConfig, iter(pieces))):
            with pytest.raises(grpc.RpcError) as caught:
                call(request)
            assert json.loads(caught.value.details())["errors"] == [
                f"{place}: the model here has no field of the number 999"
            ]


def test_bytes_that_are_no_message_are_refused(address: str) -> None:
    with grpc.insecure_channel(address) as channel:
        with pytest.raises(grpc.RpcError) as caught:
            channel.unary_unary("/otg.Openapi/SetConfig")(b"\xff\xff")
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert "no message of the model's SetConfigRequest" in caught.value.details()


def test_a_request_that_is_too_long_is_refused(address: str) -> None:
    piece = messages.Data(datum=bytes(1024 * 1024))
    whole = messages.SetConfigRequest(config=messages.Config(ports=[messages.Port(name="x" * server.MOST_BODY)]))
    with stub_of(address) as stub:
        for call, request in ((stub.SetConfig, whole), (stub.streamSetConfig, iter([piece] * 17))):
            with pytest.raises(grpc.RpcError) as caught:
                call(request)
            assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


def test_a_file_comes_in_pieces_that_clients_take() -> None:
    data = bytes(range(256)) * 16 * 1024 * 3
    pieces = [messages.Data.FromString(one) for one in rpc._in_pieces(data)]
    assert b"".join(one.datum for one in pieces) == data
    assert max(one.ByteSize() for one in pieces) < 4 * 1024 * 1024


def test_elsewhere_only_who_has_the_token_is_served() -> None:
    with serving("192.0.2.1") as address, stub_of(address) as stub:
        for metadata in (None, [("authorization", "Bearer wrong")], [("authorization", TOKEN)]):
            with pytest.raises(grpc.RpcError) as caught:
                stub.GetVersion(Empty(), metadata=metadata)
            assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
            with pytest.raises(grpc.RpcError):
                list(stub.streamGetConfig(Empty(), metadata=metadata))
        stub.GetVersion(Empty(), metadata=[("authorization", f"Bearer {TOKEN}")])


def test_snappi_verifies_the_certificate(tmp_path: Path) -> None:
    files = certificate.generate(tmp_path, "127.0.0.1")
    with serving(files=files) as address:
        api = api_of(address)
        api._use_secure_connection(str(files[0]))
        assert api.get_version().api_spec_version
        with pytest.raises(grpc.RpcError):
            api_of(address).get_version()


def test_a_port_that_another_has_is_refused(address: str) -> None:
    """Two servers on one port would each get some of the requests."""
    done = dutperf("otg", "--ports", "left=null", "--port", "0", "--grpc-port", address.rpartition(":")[2])
    assert done.exit_code == 2
    assert "--grpc-port: cannot listen on 127.0.0.1" in done.output


def test_the_journal_has_the_address_of_who_configured(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with trial_log.in_directory(out, trial_log.plan_event(0.0)) as log, serving(log=log) as address:
        api = api_of(address)
        api.set_config(api.config().deserialize(configured(flow())))
    [configuration] = [one for one in read(out) if isinstance(one, Finding)]
    assert ConfigurationFinding.of(configuration).client == "127.0.0.1"
