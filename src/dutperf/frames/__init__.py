# SPDX-License-Identifier: Apache-2.0
"""Test frames of any headers: a user's text to the frame that the engine sends (docs/frames.md).

:meth:`Stack.parse` and :meth:`Template.parse` read the text, :func:`build` makes the
:class:`~dutperf.model.DescribedFrame` of a size.
"""

from __future__ import annotations

from dutperf.frames.building import AddressBits as AddressBits
from dutperf.frames.building import Endpoints as Endpoints
from dutperf.frames.building import PlacedField as PlacedField
from dutperf.frames.building import build as build
from dutperf.frames.building import places as places
from dutperf.frames.errors import FrameError as FrameError
from dutperf.frames.headers import KINDS as KINDS
from dutperf.frames.headers import Field as Field
from dutperf.frames.headers import HeaderKind as HeaderKind
from dutperf.frames.headers import Role as Role
from dutperf.frames.stack import Header as Header
from dutperf.frames.stack import Stack as Stack
from dutperf.frames.template import Template as Template
from dutperf.frames.template import is_template as is_template
from dutperf.frames.values import Varying as Varying
