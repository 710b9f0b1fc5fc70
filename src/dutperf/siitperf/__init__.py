# SPDX-License-Identifier: Apache-2.0
"""siitperf-tp, siitperf-lat and siitperf-pdv: the commands that scripts written for siitperf start,
over this package's own trials and engine.

``configuration`` reads siitperf.conf, ``arguments`` the positional parameters, ``variables`` what
only we need to know; ``setup`` makes of them what every other command has
(:class:`dutperf.setup.configuration.Setup`, :class:`dutperf.setup.conditions.Conditions`),
``output`` the lines that scripts read, and ``commands`` runs the one trial. ``convert`` writes a
siitperf.conf as a configuration file of ours. What they keep of siitperf's outward interface, and
what is different, stands in docs/siitperf.md.
"""
