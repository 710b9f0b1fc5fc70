# SPDX-License-Identifier: Apache-2.0
"""dns64perf++: the command of that tool for existing scripts, on this package's trials and engine.

``arguments`` reads the positional parameters, ``planned`` makes the test setup and the trial of them and of the
configuration file ``dns64perf.yaml``, ``output`` writes the lines and the file that scripts read, ``commands`` runs
it all. docs/dns64perf.md lists what is the same and what differs.
"""
