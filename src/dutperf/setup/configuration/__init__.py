# SPDX-License-Identifier: Apache-2.0
"""The configuration file: how the tester is connected to the DUT (RFC 8219 4.1). It is read from YAML
and checked once, here.

An unknown key, or one without an effect, is an error: a measurement with a silently ignored setting
is worthless. Every error is one sentence that names the key.
"""

from __future__ import annotations

from dutperf.setup.configuration.checks import missing_seen_as as missing_seen_as
from dutperf.setup.configuration.errors import ConfigError as ConfigError
from dutperf.setup.configuration.errors import ParameterError as ParameterError
from dutperf.setup.configuration.keys import ANY_CERTIFICATE as ANY_CERTIFICATE
from dutperf.setup.configuration.keys import COMMANDS as COMMANDS
from dutperf.setup.configuration.keys import LINK_TIMEOUT_S as LINK_TIMEOUT_S
from dutperf.setup.configuration.keys import MAX_QUEUES as MAX_QUEUES
from dutperf.setup.configuration.keys import MEMORY_PORTS as MEMORY_PORTS
from dutperf.setup.configuration.keys import NO_PORT as NO_PORT
from dutperf.setup.configuration.keys import Address as Address
from dutperf.setup.configuration.keys import Command as Command
from dutperf.setup.configuration.keys import Dut as Dut
from dutperf.setup.configuration.keys import DutCommands as DutCommands
from dutperf.setup.configuration.keys import EngineSettings as EngineSettings
from dutperf.setup.configuration.keys import Interface as Interface
from dutperf.setup.configuration.keys import LinkBetween as LinkBetween
from dutperf.setup.configuration.keys import Mac as Mac
from dutperf.setup.configuration.keys import Offload as Offload
from dutperf.setup.configuration.keys import Offloads as Offloads
from dutperf.setup.configuration.keys import PortSpec as PortSpec
from dutperf.setup.configuration.keys import Setup as Setup
from dutperf.setup.configuration.keys import SharedPort as SharedPort
from dutperf.setup.configuration.keys import Side as Side
from dutperf.setup.configuration.keys import Stateful as Stateful
from dutperf.setup.configuration.keys import is_interface as is_interface
from dutperf.setup.configuration.keys import is_port as is_port
from dutperf.setup.configuration.keys import unicast_mac as unicast_mac
from dutperf.setup.configuration.keys import without_secrets as without_secrets
from dutperf.setup.configuration.reading import as_json as as_json
from dutperf.setup.configuration.reading import commands_of as commands_of
from dutperf.setup.configuration.reading import load as load
from dutperf.setup.configuration.reading import offloads as offloads
from dutperf.setup.configuration.reading import parse as parse
from dutperf.setup.configuration.reading import parse_yaml as parse_yaml
from dutperf.setup.configuration.reading import place_of as place_of
