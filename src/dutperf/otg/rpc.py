# SPDX-License-Identifier: Apache-2.0
"""The operations of the Open Traffic Generator API over gRPC, with the service that is published with the messages. An
error is the model's, as JSON in the status."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import unquote

import grpc
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.unknown_fields import UnknownFieldSet

from dutperf.errors import DutperfError
from dutperf.otg.generator import Generator
from dutperf.otg.model import Message, Rejected, as_members, members_of, messages, of_error
from dutperf.otg.server import MOST_BODY, OPERATIONS, MessageOrFile, Operation
from dutperf.otg.trial_log import CLIENT
from dutperf.web.access import Rules

SERVICE: Any = messages.DESCRIPTOR.services_by_name["Openapi"]
_THREADS = 16
"""Requests at once; more wait."""
_CHUNK = 1024 * 1024
"""Bytes of an answer in pieces: a client takes 4 MiB with what is around them."""
_LONGEST_ERROR = 4096
"""Bytes of a status: it is a header, of which clients take 8 KiB, and "%" is three bytes there."""
_BY_NAME = {one.name: one for one in OPERATIONS}
_CODES = {
    400: grpc.StatusCode.INVALID_ARGUMENT,
    401: grpc.StatusCode.UNAUTHENTICATED,
    413: grpc.StatusCode.RESOURCE_EXHAUSTED,
    500: grpc.StatusCode.INTERNAL,
    501: grpc.StatusCode.UNIMPLEMENTED,
}


def make(generator: Generator, rules: Rules) -> Any:
    """The server (``grpc.Server``), as yet without a port. Pages of another origin cannot speak to it."""
    options = [
        ("grpc.so_reuseport", 0),  # else two servers share a port, and each gets some of the requests
        ("grpc.max_receive_message_length", MOST_BODY),
    ]
    made = grpc.server(ThreadPoolExecutor(_THREADS, "dutperf-otg-rpc"), options=options)
    handlers = {method.name: _handler(generator, rules, method) for method in SERVICE.methods}
    made.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE.full_name, handlers),))
    return made


def _handler(generator: Generator, rules: Rules, method: Any) -> Any:
    """Of one method; those whose names begin with ``stream`` get or give messages in pieces."""
    operation = _BY_NAME[method.name.removeprefix("stream")]
    kind = GetMessageClass(method.input_type)
    read = _of_pieces if method.client_streaming else _of_request
    made = _in_pieces if method.server_streaming else _response(GetMessageClass(method.output_type))

    def answered(given: Any, context: Any) -> Any:
        try:
            _check_token(rules, context)
            CLIENT.set(_host(context.peer()))
            return made(operation.answered(generator, read(given, operation, kind)))
        except DutperfError as error:
            _abort(context, of_error(error))

    if method.client_streaming:
        return grpc.stream_unary_rpc_method_handler(answered)
    if method.server_streaming:
        return grpc.unary_stream_rpc_method_handler(answered)
    return grpc.unary_unary_rpc_method_handler(answered)


def _host(peer: str) -> str:
    """Of ``ipv4:127.0.0.1:50000``, or ``ipv6:%5B::1%5D:50000``, the address."""
    return unquote(peer).partition(":")[2].rpartition(":")[0].strip("[]")


def _check_token(rules: Rules, context: Any) -> None:
    given = dict(context.invocation_metadata()).get("authorization", "")
    if not rules.is_local and not rules.is_bearer(given):
        raise Rejected("the token is missing or wrong: give it as the metadata authorization: Bearer TOKEN", code=401)


def _abort(context: Any, error: Rejected) -> None:
    """End the call with the model's ``Error``, whose code is that of gRPC, and of whose texts as much as fits."""
    status = _CODES[error.code]
    message = error.message()
    message.code = status.value[0]
    while len(text := json.dumps(as_members(message))) + 2 * text.count("%") > _LONGEST_ERROR:
        if len(message.errors) > 1:
            del message.errors[-1]
        else:
            message.errors[0] = message.errors[0][: len(message.errors[0]) // 2]
    context.abort(status, text)


def _of_request(data: bytes, operation: Operation, kind: Any) -> Message:
    """The message within a request. Raises Rejected: it is none."""
    if operation.request is None:
        return None
    [field] = kind.DESCRIPTOR.fields
    return _checked(getattr(_parsed(data, kind), field.name))


def _of_pieces(pieces: Iterator[bytes], operation: Operation, kind: Any) -> Message:
    """A message that comes in pieces. Raises Rejected: it is none, or too long."""
    data = bytearray()
    for piece in pieces:
        data += _parsed(piece, kind).datum
        if len(data) > MOST_BODY:
            raise Rejected(f"more than {MOST_BODY:,} bytes", code=413)
    return _checked(_parsed(bytes(data), operation.request))


def _parsed(data: bytes, kind: Any) -> Message:
    try:
        return kind.FromString(data)
    except DecodeError:
        raise Rejected(f"the request is no message of the model's {kind.DESCRIPTOR.name}") from None


def _checked(message: Message) -> Message:
    """``message``. Raises Rejected where it has fields that this model does not have: of a newer one, say."""
    if unknown := list(_unknown(message, "")):
        raise Rejected(*unknown)
    return message


def _unknown(message: Message, where: str) -> Iterator[str]:
    for one in UnknownFieldSet(message):
        yield f"{where or 'the message'}: the model here has no field of the number {one.field_number}"
    for _, place, one in members_of(message):
        yield from _unknown(one, f"{where}.{place}" if where else place)


def _response(kind: Any) -> Callable[[MessageOrFile], bytes]:
    [field] = kind.DESCRIPTOR.fields

    def made(answer: MessageOrFile) -> bytes:
        data: bytes = kind(**{field.name: answer}).SerializeToString()
        return data

    return made


def _in_pieces(answer: MessageOrFile) -> Iterator[bytes]:
    data = answer if isinstance(answer, bytes) else answer.SerializeToString()
    for begin in range(0, len(data), _CHUNK):
        yield messages.Data(datum=data[begin : begin + _CHUNK], chunk_size=_CHUNK).SerializeToString()
