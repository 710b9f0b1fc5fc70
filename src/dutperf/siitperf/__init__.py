# SPDX-License-Identifier: Apache-2.0
"""siitperf-tp, siitperf-lat and siitperf-pdv: siitperf's commands for existing scripts, on this package's
trials and engine.

``configuration`` reads siitperf.conf, ``arguments`` the positional parameters, ``variables`` the
settings that siitperf does not have. ``setup`` makes the :class:`dutperf.setup.configuration.Setup`
and :class:`dutperf.setup.conditions.Conditions` from them, ``commands`` runs the trial, ``output``
prints the lines that scripts read. ``convert`` converts a siitperf.conf to a configuration of dutperf.
docs/siitperf.md lists what is the same as in siitperf and what differs.
"""
