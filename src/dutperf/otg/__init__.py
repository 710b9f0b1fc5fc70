# SPDX-License-Identifier: Apache-2.0
"""The tester as a traffic generator for programs that speak the Open Traffic Generator API (otg.dev): snappi.

``model`` has the published messages, ``coverage`` says which are covered; ``headers``, ``flows`` and ``links`` make
frames, streams and ports of a configuration; ``generator`` runs them, with ``traffic``, ``port_links``, ``echo`` and
``trial_log``; ``server`` has the operations of clients, ``app`` serves them over HTTP and ``rpc`` over gRPC.
``to_configuration`` makes a file of ours of one of the API; ``file`` tells which is which. ``to_message`` and
``to_headers`` are the way back, and ``script`` writes it for snappi.
"""
