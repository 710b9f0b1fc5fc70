# SPDX-License-Identifier: Apache-2.0
"""A page to start, watch and stop runs, and to look through a store: ``dutperf serve``.

Runs are processes of the command line, and what is shown is read from their directories: the server measures nothing,
keeps nothing, and may be stopped and started at any time. :mod:`dutperf.web.app` has the addresses,
:mod:`dutperf.web.access` decides who may use them.
"""
