# SPDX-License-Identifier: Apache-2.0
"""Files of configurations: which tester's they are, by what they have in them. JSON and YAML of the Open Traffic
Generator API are read without its library."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from enum import StrEnum, auto
from pathlib import Path
from typing import Any

from dutperf.setup import yaml_text
from dutperf.setup.configuration import ConfigError, Setup
from dutperf.setup.yaml_text import YamlError


class Kind(StrEnum):
    """Whose a file is."""

    OTG = auto()
    OURS = auto()
    OTHER = auto()
    """Neither: such as a siitperf.conf."""


def read(path: Path) -> tuple[Kind, Mapping[str, Any]]:
    """Whose a file is, and its members if it is one of the Open Traffic Generator API. Raises ConfigError: it cannot be
    read, or is JSON or YAML with a mistake."""
    try:
        text = path.read_bytes().decode("utf-8-sig", errors="replace")
    except OSError as error:
        raise ConfigError(f"cannot be read in {Path.cwd()}: {error.strerror}", str(path)) from None
    members = _members(text, path)
    if any(isinstance(members.get(name), list) for name in ("ports", "flows")):
        return Kind.OTG, members
    if members.keys() & Setup.model_fields.keys():
        return Kind.OURS, {}
    if text.lstrip()[:1] in ("{", "["):
        raise ConfigError("has neither ports nor flows: it is no configuration of a tester", str(path))
    return Kind.OTHER, {}


def _members(text: str, path: Path) -> Mapping[str, Any]:
    """Of JSON or YAML; none of any other text."""
    try:
        if text.lstrip()[:1] in ("{", "["):
            found = json.loads(text)
        else:
            found, _ = yaml_text.read(text)
    except YamlError as error:
        if re.search(r"^(ports|flows|streams):", text, re.MULTILINE):
            raise ConfigError(str(error), error.key, origin=str(path), line=error.line) from None
        return {}
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"is no JSON: {error}", str(path)) from None
    return found if isinstance(found, dict) else {}
