# SPDX-License-Identifier: Apache-2.0
"""What an OTG server is asked, over HTTP (snappi's own client verifies no certificate and waits for ever)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import requests
import urllib3
from requests.exceptions import ConnectionError as NotConnected
from requests.exceptions import RequestException, SSLError

from dutperf.setup.configuration import ANY_CERTIFICATE, EngineSettings, without_secrets
from dutperf.tester import TesterError

KEY = "engine.otg"
VARIABLE = "DUTPERF_OTG_TOKEN"
"""Environment variable with the token, where it is not the first part of the path."""
AWAY, REFUSED = "otg_away", "otg"
"""Codes of errors: it may answer later, or does not do this."""
CONNECT_S, ANSWER_S = 10.0, 120.0
"""The longest times to wait: a server may open its ports, and ask the DUT for its MAC addresses, within a request."""
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_MOST_ERRORS = 3
_LONGEST_ERROR = 300
_UNAUTHORISED = (401, 403)
_NOT_IMPLEMENTED = 501


class ServerClient:
    """A server; each method raises TesterError where it does not answer, or with an error."""

    def __init__(self, settings: EngineSettings) -> None:
        assert settings.otg is not None, "the caller has checked"
        self._base = settings.otg.rstrip("/")
        self.shown = without_secrets(settings.otg)
        self._session = requests.Session()
        self._session.trust_env = False  # neither proxies nor passwords that the environment has for others
        self._session.verify = _verified(settings)
        if token := os.environ.get(VARIABLE):
            self._session.headers["Authorization"] = f"Bearer {token}"

    def close(self) -> None:
        self._session.close()

    def get(self, path: str) -> dict[str, Any]:
        """The JSON object that it answers."""
        return self._ask("GET", path, None)

    def post(self, path: str, members: Any) -> dict[str, Any]:
        """Send JSON; returns the JSON object that it answers."""
        return self._ask("POST", path, members)

    def _ask(self, method: str, path: str, members: Any) -> dict[str, Any]:
        try:
            answer = self._session.request(
                method, self._base + path, json=members, timeout=(CONNECT_S, ANSWER_S), allow_redirects=False
            )
        except RequestException as error:
            raise self._unreachable(error) from None
        if answer.status_code in _UNAUTHORISED:
            raise _error(
                f"{self.shown} asks for a token, or for another one: give it as the first part of the path"
                f" ({self.shown}/TOKEN), or in {VARIABLE}",
                REFUSED,
            )
        if answer.status_code >= 300:
            may_pass = answer.status_code >= 500 and answer.status_code != _NOT_IMPLEMENTED
            code = AWAY if may_pass else REFUSED
            raise _error(f"{self.shown} refused {method} {path}: {_told(answer)}", code)
        try:
            found = answer.json() if answer.content else {}
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise _error(f"{self.shown} answers {method} {path} without JSON: it is no OTG server", REFUSED)
        return found

    def _unreachable(self, error: RequestException) -> TesterError:
        """In one sentence; requests nests the reasons."""
        text = str(error)
        if isinstance(error, SSLError):
            if "CERTIFICATE_VERIFY_FAILED" not in text:
                return _error(f"{self.shown} does not speak TLS: an http:// address may be right", REFUSED)
            reason = text.partition("certificate verify failed: ")[2].partition(" (_ssl")[0] or "unknown"
            return _error(
                f"the certificate of {self.shown} is not trusted ({reason}): give the server's certificate, or that of"
                f" its authority, as engine.otg_certificate: FILE, or {ANY_CERTIFICATE} to verify none",
                REFUSED,
            )
        if isinstance(error, NotConnected):
            return _error(f"there is no OTG server at {self.shown}, or it has ended", AWAY)
        return _error(f"{self.shown} does not answer ({type(error).__name__})", AWAY)


def _verified(settings: EngineSettings) -> bool | str:
    """What the certificate is verified by; without a file none on this machine, the system's authorities elsewhere.
    Raises TesterError: there is no such file."""
    given = settings.otg_certificate
    if given is not None and given != ANY_CERTIFICATE:
        if not Path(given).is_file():
            raise TesterError(f"there is no file {given}", code=REFUSED, field="engine.otg_certificate")
        return given
    if given is None and urlsplit(settings.otg or "").hostname not in _LOOPBACK:
        return True
    urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)  # the user has decided
    return False


def _told(answer: requests.Response) -> str:
    """The model's ``Error``, or what came instead."""
    try:
        members = answer.json()
        errors = [str(one) for one in members["errors"][:_MOST_ERRORS]]
    except (ValueError, KeyError, TypeError):
        errors = []
    return ("; ".join(errors) or f"HTTP status {answer.status_code}")[:_LONGEST_ERROR]


def _error(text: str, code: str) -> TesterError:
    return TesterError(text, code=code, field=KEY)
