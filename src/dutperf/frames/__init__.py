# SPDX-License-Identifier: Apache-2.0
"""Test frames of any headers: a user's text to the frame that the engine sends (docs/frames.md).

:meth:`Stack.parse` and :meth:`Template.parse` read the text, :func:`build` makes the
:class:`~dutperf.model.DescribedFrame` of a size.
"""

from __future__ import annotations

from dutperf.frames.building import AddressBits, Endpoints, PlacedField, build, places
from dutperf.frames.errors import FrameError
from dutperf.frames.headers import KINDS, Field, HeaderKind, Role
from dutperf.frames.stack import Header, Stack
from dutperf.frames.template import Template, is_template
from dutperf.frames.values import Varying

__all__ = [
    "KINDS",
    "AddressBits",
    "Endpoints",
    "Field",
    "FrameError",
    "Header",
    "HeaderKind",
    "PlacedField",
    "Role",
    "Stack",
    "Template",
    "Varying",
    "build",
    "is_template",
    "places",
]
