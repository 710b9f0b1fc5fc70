# SPDX-License-Identifier: Apache-2.0
"""The schemas of requests and events of the engine's protocol, as validators."""

from __future__ import annotations

import json

from jsonschema import Draft202012Validator, FormatChecker

from fakes.transcript import PROTOCOL


def _validator(name: str) -> Draft202012Validator:
    schema = json.loads((PROTOCOL / f"{name}.schema.json").read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema, format_checker=FormatChecker(["ipv4", "ipv6"]))


REQUESTS, EVENTS = _validator("request"), _validator("event")
