# SPDX-License-Identifier: Apache-2.0
"""The server of ``dutperf serve``: who may do what, what it shows and starts; nothing outside is reached."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import shutil
import sqlite3
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from starlette.testclient import TestClient

import documented
from command_line import dutperf, setup_of, write
from dutperf.errors import StoreBusy, StoreError
from dutperf.journal import JournalWriter, PlanEvent
from dutperf.procedures.bench import PlanError
from dutperf.procedures.request import Request
from dutperf.run import resume
from dutperf.run.progress import PROGRESS
from dutperf.run.requests import Requests
from dutperf.store import Store
from dutperf.web import app, following, forms, stored
from dutperf.web import runs as web_runs
from dutperf.web.access import MOST_BODY, Rules
from dutperf.web.errors import Refused, without_directories
from dutperf.web.forms import Places
from dutperf.web.runs import Run, Runs, run_in
from dutperf.web.stored import Stored

TOKEN = "a-token-of-these-tests"
LOCAL = "http://127.0.0.1:8219"
EVIL = "<script>alert('x')</script>"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two measured suites of a DUT whose name is HTML."""
    folder = tmp_path_factory.mktemp("served")
    wanted = {name: documented.MEASURED[name] for name in ("throughput", "latency")}
    for name in ("one", "two"):
        documented.measure(folder / name, documented.a_suite(**wanted))
        for journal in (folder / name).glob("*/journal.jsonl"):
            first, *rest = journal.read_text().splitlines(keepends=True)
            plan = json.loads(first)
            plan["dut"] = {"name": EVIL, "version": name}
            journal.write_text("".join([json.dumps(plan) + "\n", *rest]))
    return folder


@pytest.fixture
def server(results: Path, tmp_path: Path) -> app.Server:
    shutil.copytree(results, tmp_path / "results")
    (tmp_path / "setups").mkdir()
    write(tmp_path / "setups", "Engine")
    with Store(tmp_path / "store.sqlite") as store:
        store.add(tmp_path / "results")
    roots = ((tmp_path / "results").resolve(),)
    places = Places(tmp_path / "setups", roots)
    return app.Server(Runs(roots), places, Stored(tmp_path / "store.sqlite"), Rules(TOKEN, "127.0.0.1"))


@pytest.fixture
def reader(server: app.Server) -> Iterator[TestClient]:
    """Without a token."""
    with TestClient(app.make(server), LOCAL, raise_server_exceptions=True) as client:
        yield client


@pytest.fixture
def owner(server: app.Server) -> Iterator[TestClient]:
    with TestClient(app.make(server), LOCAL, headers={"Authorization": f"Bearer {TOKEN}"}) as client:
        yield client


def ids(client: TestClient) -> list[str]:
    return [one["id"] for one in client.get("/api/store/measurements").json()["measurements"]]


# --- who may do what ------------------------------------------------------------------------------


def test_on_loopback_anybody_looks_and_nobody_starts_without_the_token(reader: TestClient) -> None:
    assert reader.get("/").status_code == 200
    assert reader.get("/store").status_code == 200
    assert "Start a run" not in reader.get("/").text
    for path in ("/api/runs", "/api/runs/x/stop", "/api/runs/x/resume", "/api/runs/x/rate"):
        answer = reader.post(path, json={})
        assert (answer.status_code, "token" in answer.json()["error"]) == (401, True)


def test_elsewhere_everything_needs_the_token(server: app.Server) -> None:
    there = app.make(replace(server, rules=Rules(TOKEN, "0.0.0.0")))
    with TestClient(there, "http://tester.example:8219") as client:
        for path in ("/", "/store", "/api/runs", "/static/serve.css", "/api/openapi.json"):
            assert client.get(path).status_code == 401
        assert client.get("/", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200


def test_the_token_becomes_a_cookie_and_leaves_the_address(reader: TestClient) -> None:
    answer = reader.get("/store", params={"token": TOKEN}, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/store")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    page = reader.get("/")
    assert "Start a run" in page.text
    assert TOKEN not in page.text
    assert (
        reader.get(f"{LOCAL}//evil.example/", params={"token": TOKEN}, follow_redirects=False).headers["location"]
        == "/evil.example/"
    )


def test_two_servers_on_a_host_do_not_log_each_other_s_user_out(server: app.Server) -> None:
    other = replace(server, rules=Rules("another-token", "127.0.0.1"))
    with TestClient(app.make(server), LOCAL) as one, TestClient(app.make(other), LOCAL) as two:
        one.get("/", params={"token": TOKEN})
        two.cookies.update(one.cookies)
        two.get("/", params={"token": "another-token"})
        one.cookies.update(two.cookies)
        assert all("Start a run" in each.get("/").text for each in (one, two))
        named = one.get("/api/openapi.json").json()["components"]["securitySchemes"]["cookie"]["name"]
        assert named in one.cookies


@pytest.mark.parametrize("wrong", ["", "x", TOKEN[:-1], TOKEN + "x", "ä", "\x00"])
def test_wrong_tokens(reader: TestClient, wrong: str) -> None:
    reader.cookies.set(Rules(TOKEN, "").cookie, wrong.encode("ascii", "ignore").decode().strip("\x00") or "x")
    assert reader.post("/api/runs", json={}).status_code == 401
    assert reader.get("/", params={"token": wrong or "no"}).status_code == 401


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Origin": "http://["},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_pages_of_other_origins_change_nothing(owner: TestClient, headers: dict[str, str]) -> None:
    assert owner.post("/api/runs", json={}, headers=headers).status_code == 403


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "[", "198.18.0.1:8219"])
def test_other_names_of_this_host_are_not_answered(owner: TestClient, host: str) -> None:
    assert owner.get("/api/runs", headers={"Host": host}).status_code == 421


def test_own_names_are(owner: TestClient) -> None:
    for host in ("localhost:8219", "127.0.0.1", "[::1]:8219"):
        assert owner.get("/api/runs", headers={"Host": host}).status_code == 200


def test_large_bodies_and_other_kinds_are_refused(owner: TestClient) -> None:
    assert owner.post("/api/runs", json={"plan": "x" * MOST_BODY}).status_code == 413
    chunks = (b"x" * 65536 for _ in range(10))
    assert owner.post("/api/runs", content=chunks, headers={"Content-Type": "application/json"}).status_code == 413
    assert owner.post("/api/runs", content="plan=x").status_code == 415
    for text in ("{", "[]", "1", "[" * 100_000):
        assert owner.post("/api/runs", content=text, headers={"Content-Type": "application/json"}).status_code == 400


def test_pages_run_no_foreign_script(reader: TestClient) -> None:
    policy = reader.get("/").headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "unsafe-inline" not in policy.replace("style-src 'self' 'unsafe-inline'", "")
    assert reader.get("/").headers["x-content-type-options"] == "nosniff"


# --- what is shown --------------------------------------------------------------------------------


def test_names_are_escaped_everywhere(reader: TestClient) -> None:
    one, other, *_ = ids(reader)
    series = reader.get(f"/api/store/measurements/{one}").json()["series"]
    pages = ["/", "/store", f"/store?dut={EVIL}", f"/store/measurements/{one}", f"/store/series/{series}"]
    pages += [f"/store/measurements/{one}/report", f"/store/measurements/{EVIL}", f"/{EVIL}"]
    pages += [f"/store/compare?base={one}&other={other}", f"/store/compare?base={EVIL}&other={one}"]
    for page in pages:
        assert EVIL not in reader.get(page).text, page
    assert "&lt;script&gt;" in reader.get("/store").text


def test_a_measurement_is_the_same_everywhere(reader: TestClient, tmp_path: Path) -> None:
    for identifier in ids(reader):
        found = reader.get(f"/api/store/measurements/{identifier}").json()
        page = reader.get(f"/store/measurements/{identifier}").text
        assert found["figures"]
        for figure in found["figures"]:
            if figure["median"] is not None:
                assert f"{figure['median']:,.6g}" in page
        assert str(tmp_path) not in page, "directories are nobody's business"


def test_the_store_lists_the_first_figure_of_each(reader: TestClient) -> None:
    page = reader.get("/store").text
    for one in reader.get("/api/store/measurements").json()["measurements"]:
        figures = reader.get(f"/api/store/measurements/{one['id']}").json()["figures"]
        first = next(figure for figure in figures if figure["median"] is not None)
        assert one["figure"].startswith(f"{first['name']} {first['median']:,.6g} ({first['at']}")
        assert f"<td>{one['figure']}</td>" in page


def test_links_stay_when_the_store_is_made_again(reader: TestClient, tmp_path: Path) -> None:
    before = ids(reader)
    shutil.move(tmp_path / "results", tmp_path / "elsewhere")
    with Store(tmp_path / "store.sqlite") as store:
        store.add(tmp_path / "elsewhere")
        store.rebuild()
    assert ids(reader) == before
    assert reader.get(f"/store/measurements/{before[0]}/report").status_code == 200


def test_a_search_has_pages(reader: TestClient) -> None:
    found = reader.get("/api/store/measurements").json()
    assert (found["number"], found["pages"], len(found["measurements"])) == (4, 1, 4)
    assert reader.get("/api/store/measurements", params={"procedure": "latency"}).json()["number"] == 2
    assert reader.get("/api/store/measurements", params={"dut": "two"}).json()["number"] == 2
    assert reader.get("/api/store/measurements", params={"page": "2"}).json()["measurements"] == []
    for page in ("0", "-1", "x", "1e3", "9" * 40, "²"):
        assert reader.get("/store", params={"page": page}).status_code == 400


def test_pages_lead_to_each_other(reader: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "PAGE", 1)
    page = reader.get("/store", params={"dut": "script", "page": "2"}).text
    assert "page 2 of 4" in page
    assert "?page=1&amp;dut=script" in page
    assert "?page=3&amp;dut=script" in page
    newest = [
        reader.get("/api/store/measurements", params={"page": str(n)}).json()["measurements"][0] for n in (1, 2, 3, 4)
    ]
    assert [one["started"] for one in newest] == sorted((one["started"] for one in newest), reverse=True)
    assert len({one["id"] for one in newest}) == 4


def test_two_are_compared_as_on_the_command_line(reader: TestClient, tmp_path: Path) -> None:
    found = reader.get("/api/store/measurements", params={"procedure": "throughput"}).json()["measurements"]
    page = reader.get("/store/compare", params={"base": found[1]["id"], "other": found[0]["id"]})
    assert page.status_code == 200
    text = dutperf("compare", tmp_path / "results" / "one" / "throughput", tmp_path / "results" / "two" / "throughput")
    assert text.exit_code == 0
    assert "throughput" in page.text
    assert "<table>" in page.text


def test_a_store_that_is_not_there_is_told(server: app.Server) -> None:
    with TestClient(app.make(replace(server, store=Stored(Path("/nowhere/x.sqlite")))), LOCAL) as client:
        answer = client.get("/store")
    assert answer.status_code == 404
    assert "dutperf store add" in answer.text


def test_every_address_of_the_interface_is_in_its_document(reader: TestClient, server: app.Server) -> None:
    paths = reader.get("/api/openapi.json").json()["paths"]
    there = {(path, method.upper()) for path, methods in paths.items() for method in methods}
    made = app.make(server)
    routes = {
        (route.path, method)
        for route in made.routes
        for method in getattr(route, "methods", None) or ()
        if getattr(route, "path", "").startswith("/api/") and method != "HEAD"
    }
    assert there == routes


@pytest.mark.parametrize("path", ["/api/labs", "/api/runs/0/stop", "/store"])
def test_a_method_that_an_address_does_not_have_is_answered_by_those_it_has(owner: TestClient, path: str) -> None:
    answer = owner.request("PUT", path)
    assert answer.status_code == 405
    assert set(answer.headers["allow"].replace(" ", "").split(",")) <= {"GET", "HEAD", "POST"}


def test_what_the_document_calls_valid_is_not_refused_for_its_form(reader: TestClient) -> None:
    paths = reader.get("/api/openapi.json").json()["paths"]
    asked = [one["post"]["requestBody"] for one in paths.values() if "post" in one]
    assert all(one["required"] for one in asked)
    start = Draft202012Validator(paths["/api/runs"]["post"]["requestBody"]["content"]["application/json"]["schema"])
    assert [start.is_valid(one) for one in ({}, {"plan": "x"}, {"procedure": "pdv"})] == [False, True, True]
    [page] = [one["schema"] for one in paths["/api/store/measurements"]["get"]["parameters"] if one["name"] == "page"]
    for number in (0, 1, 1_000_000, 1_000_001):
        refused = reader.get("/api/store/measurements", params={"page": number}).status_code == 400
        assert refused is not Draft202012Validator(page).is_valid(number)


def test_the_pages_link_to_pages_that_are_there(reader: TestClient) -> None:
    from html.parser import HTMLParser

    links: set[str] = set()

    class Links(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            del tag
            links.update(value for name, value in attrs if name in ("href", "src") and value and value[0] in "/?")

    one = ids(reader)[0]
    series = reader.get(f"/api/store/measurements/{one}").json()["series"]
    run = reader.get("/api/runs").json()[0]["id"]
    for page in ("/", "/store", f"/store/measurements/{one}", f"/store/series/{series}", f"/runs/{run}"):
        Links().feed(reader.get(page).text)
    assert any(link.startswith("/static/uplot") for link in links)
    for link in sorted(links):
        assert reader.get(link).status_code == 200, link


# --- what is started ------------------------------------------------------------------------------

SEARCH = {"duration": "0.01", "drain": "0", "repetitions": "1", "max-rate": "8000", "initial-rate": "1000"}
SEARCH |= {"resolution": "500", "frame-size": "84"}


def until(client: TestClient, run: str, *states: str) -> str:
    ends_s = time.monotonic() + 60
    while (state := client.get(f"/api/runs/{run}").json()["state"]) not in states:
        assert time.monotonic() < ends_s, state
        time.sleep(0.1)
    return str(state)


def test_a_run_is_started_from_the_form_and_is_that_of_the_command_line(owner: TestClient, tmp_path: Path) -> None:
    asked = {"config": "Engine.yaml", "procedure": "throughput", "options": SEARCH, "name": "../../my run"}
    answer = owner.post("/api/runs", json=asked)
    assert answer.status_code == 201, answer.text
    run = answer.json()
    assert until(owner, run["id"], "complete", "failed") == "complete"
    [directory] = (tmp_path / "results").glob("*-my-run")
    assert (directory / "summary.json").exists()
    assert owner.get(f"/runs/{run['id']}/report").status_code == 200
    assert owner.post(f"/api/runs/{run['id']}/stop", json={}).status_code == 409
    assert owner.post(f"/api/runs/{run['id']}/resume", json={}).status_code == 409


WAITS = "import signal, time; signal.signal(signal.SIGINT, signal.SIG_DFL); time.sleep(60)"


def test_one_run_at_a_time_has_the_ports_of_a_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the file is called. The runs are processes that wait."""
    monkeypatch.setattr(web_runs, "program", lambda: [sys.executable, "-S", "-c", WAITS])
    monkeypatch.setattr(web_runs, "check", lambda _: None)
    plans = {}
    for name, left, right in (("one", "p1", "p2"), ("same", "p3", "af_packet:p1"), ("other", "p4", "p5")):
        setup = setup_of("Engine")
        setup["left"]["port"], setup["right"]["port"] = left, right
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(setup))
        plans[name] = {"config": str(tmp_path / f"{name}.yaml"), "procedures": {"throughput": None}}
    runs = Runs((tmp_path / "results",))

    def end(run: Run) -> None:
        ends_s = time.monotonic() + 60
        while runs.state(run) == "starting":
            with suppress(Refused):
                runs.stop(run)
            assert time.monotonic() < ends_s
            time.sleep(0.02)

    first = runs.start(plans["one"], "first")
    with pytest.raises(Refused, match=f"in use by the run {first.name}"):
        runs.start(plans["same"], "second")
    other = runs.start(plans["other"], "other")
    end(first)
    again = runs.start(plans["same"], "again")
    for run in (other, again):
        end(run)


def test_of_two_that_resume_a_run_at_once_one_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if both had looked at its state before either resumed it."""
    monkeypatch.setattr(web_runs, "program", lambda: [sys.executable, "-S", "-c", WAITS])
    both = threading.Barrier(2, timeout=60)
    monkeypatch.setattr(web_runs, "_check_origin", lambda *_: both.wait())
    directory = tmp_path / "results" / "one"
    directory.mkdir(parents=True)
    (directory / "journal.jsonl").write_text("{}\n")
    runs, outcomes = Runs((tmp_path / "results",)), list[str]()

    def resumed() -> None:
        try:
            runs.resume(run_in(directory), lambda _: None, lambda _: None)
            outcomes.append("resumed")
        except Refused as error:
            outcomes.append(str(error))

    threads = [threading.Thread(target=resumed) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for process in runs._processes.values():
        process.kill()
        process.wait()
    assert sorted(outcomes) == ["resumed", "the run is running"]


def test_a_run_that_is_resumed_is_one_of_those_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_runs, "MOST_AT_ONCE", 0)
    (tmp_path / "journal.jsonl").write_text("{}\n")
    with pytest.raises(Refused, match="0 runs that were started here"):
        Runs((tmp_path,)).resume(run_in(tmp_path), lambda _: None, lambda _: None)


def test_a_run_is_stopped_and_resumed(owner: TestClient) -> None:
    options = {**SEARCH, "settle": "0.3", "repetitions": "4"}
    plan = {"config": "Engine.yaml", "procedures": {"throughput": options}}
    run = owner.post("/api/runs", json={"plan": json.dumps(plan)}).json()["id"]
    until(owner, run, "running")
    time.sleep(0.5)
    assert owner.post(f"/api/runs/{run}/stop", json={}).status_code == 200
    assert until(owner, run, "stopped", "complete", "failed") == "stopped"
    assert owner.post(f"/api/runs/{run}/resume", json={}).status_code == 200
    assert until(owner, run, "complete", "failed") == "complete"


def test_journals_are_read_again_only_when_they_have_changed(
    reader: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def states() -> dict[str, str]:
        return {one["name"]: one["state"] for one in reader.get("/api/runs").json()}

    read: list[Path] = []
    whole = resume.is_complete
    monkeypatch.setattr(resume, "is_complete", lambda directory: read.append(directory) or whole(directory))
    assert states() == states() == {"one": "complete", "two": "complete"}
    assert sorted(path.name for path in read) == ["one", "two"]
    path = tmp_path / "results" / "one" / "latency" / "journal.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    assert states() == {"one": "stopped", "two": "complete"}
    assert len(read) == 3


def test_errors_do_not_tell_where_files_are(reader: TestClient, tmp_path: Path) -> None:
    broken = tmp_path / "results" / "broken"
    broken.mkdir()
    (broken / "journal.jsonl").write_text('{"event": "plan", "procedure": "throughput"}\n')
    [found] = [one["id"] for one in reader.get("/api/runs").json() if one["name"] == "broken"]
    answer = reader.get(f"/runs/{found}/report")
    assert answer.status_code == 404
    assert "journal.jsonl" in answer.text
    assert str(tmp_path) not in answer.text


def test_a_report_that_is_older_than_its_run_is_made_again(reader: TestClient, tmp_path: Path) -> None:
    directory = tmp_path / "results" / "one"
    report = directory / "report.html"
    report.write_text("as it was")
    [found] = [one["id"] for one in reader.get("/api/runs").json() if one["name"] == "one"]
    for number, path in enumerate(sorted(directory.glob("*/journal.jsonl"))):
        os.utime(path, (1000 + number, 1000 + number))
    for written_s, is_used in ((1001, True), (1000, False)):
        os.utime(report, (written_s, written_s))
        assert (reader.get(f"/runs/{found}/report").text == "as it was") is is_used


def test_a_series_has_its_full_name(reader: TestClient) -> None:
    series = reader.get(f"/api/store/measurements/{ids(reader)[0]}").json()["series"]
    for name, status in ((series, 200), (series[:-1], 404), (series[:1], 404)):
        for path in ("/store/series", "/api/store/series"):
            assert reader.get(f"{path}/{name}").status_code == status


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (PermissionError(errno.EPERM, "Operation not permitted"), 500, "refused it: Operation not permitted"),
        (OSError(errno.ENOSPC, "No space left on device", "/srv/x/log.txt"), 500, "left on device (log.txt)"),
        (StoreBusy("/srv/x/store.sqlite: database is locked"), 503, "store.sqlite: database is locked"),
        (StoreError("/srv/x/store.sqlite: no such table"), 409, "store.sqlite: no such table"),
    ],
)
def test_errors_of_the_system_and_the_store_are_a_sentence(
    owner: TestClient, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int, text: str
) -> None:
    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr(Runs, "find", fails)
    answer = owner.post("/api/runs/x/stop", json={})
    assert (answer.status_code, text in answer.json()["error"], "/srv" in answer.text) == (status, True, False)
    page = owner.get("/runs/x")
    assert (page.status_code, text in page.text) == (status, True)


def test_a_store_without_its_tables_is_told(reader: TestClient, tmp_path: Path) -> None:
    one = ids(reader)[0]
    with sqlite3.connect(tmp_path / "store.sqlite") as database:
        database.execute("DROP TABLE figure")
    for path in ("/api/store/measurements", f"/api/store/measurements/{one}"):
        answer = reader.get(path)
        assert (answer.status_code, "no such table" in answer.json()["error"]) == (409, True)


def test_results_of_another_version_are_told(reader: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    base, other = ids(reader)[:2]
    monkeypatch.setattr(stored.results, "read", lambda _: Request.model_validate({"rate": "many"}))
    monkeypatch.setattr(stored, "REPORT", "none.html")
    compared = reader.get("/store/compare", params={"base": base, "other": other})
    report = reader.get(f"/store/measurements/{base}/report")
    assert (compared.status_code, report.status_code) == (409, 404)
    assert all("this version cannot read its results" in one.text for one in (compared, report))


def test_a_journal_that_goes_meanwhile_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_runs, "journals_of", lambda directory: [directory / "journal.jsonl"])
    assert web_runs.journals(tmp_path) == []


def test_links_in_a_directory_of_results_lead_nowhere(owner: TestClient, tmp_path: Path) -> None:
    """It may come from anybody, and the server may be root's."""
    elsewhere = tmp_path / "secret"
    elsewhere.write_text("secret\n")
    run = tmp_path / "results" / "one"
    for name in ("report.html", "log.txt"):
        (run / name).unlink(missing_ok=True)
        (run / name).symlink_to(elsewhere)
    [found] = [one["id"] for one in owner.get("/api/runs").json() if one["name"] == "one"]
    assert (owner.get(f"/runs/{found}/report").status_code, owner.get("/api/runs").status_code) == (404, 200)
    follower = following.Follower(Runs(((tmp_path / "results").resolve(),)), run_in(run))
    assert "log" not in [kind for kind, _ in follower.news()]
    with pytest.raises(Refused, match="its directory has links"):
        web_runs._check_origin(run, lambda _: None, lambda _: None)
    assert elsewhere.read_text() == "secret\n"


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize("file", ["suite.json", "latency/journal.jsonl"])
def test_results_that_name_files_are_not_resumed(tmp_path: Path, file: str) -> None:
    """They may come from anybody, and the run would write there."""
    path = tmp_path / "results" / "one" / file

    def asked(member: dict[str, Any]) -> str:
        first, *rest = [path.read_text()] if path.suffix == ".json" else path.read_text().splitlines(keepends=True)
        document = json.loads(first)
        document.get("measurements", [document])[-1]["conditions"].update(member)
        path.write_text("".join([json.dumps(document) + "\n", *rest]))
        try:
            web_runs._check_origin(path.parents[len(Path(file).parts) - 1], lambda _: None, lambda _: None)
        except Refused as error:
            return str(error)
        return ""

    assert asked({"frame_from": "a.pcap:1", "frame": "45 00"}) == "", "was read already"
    assert "names files (delays_to)" in asked({"delays_to": "/etc/cron.d"})
    assert "names files (delays_to, self_test_from)" in asked({"self_test_from": "/srv"})


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/srv/x/journal.jsonl: broken", "journal.jsonl: broken"),
        ("it is in '/srv/x'", "it is in 'x'"),
        ("frames/s, 198.18.0.2/24, http://127.0.0.1/x/y, eth1", "frames/s, 198.18.0.2/24, http://127.0.0.1/x/y, eth1"),
    ],
)
def test_only_directories_are_left_out(text: str, shown: str) -> None:
    assert without_directories(text) == shown


@pytest.fixture
def by_hand(tmp_path: Path) -> Iterator[list[Request]]:
    """Traffic by hand in the directory ``by-hand`` that takes requests below 50,000 frames/s."""
    directory, taken, ended = tmp_path / "results" / "by-hand", [], threading.Event()

    def accept(request: Request) -> None:
        if request.rate is not None and request.rate.value > 50_000:
            raise PlanError("is too high", option="rate")
        taken.append(request)

    def take() -> None:
        while not ended.wait(0.01):
            Requests(directory).take(accept)

    described = {"conditions": {}, "attempts": {}, "search": {}, "axes": [], "cases": []}
    thread = threading.Thread(target=take)
    with JournalWriter.create(directory) as journal:
        journal.write(PlanEvent(dutperf="0", procedure="traffic", **described))
        thread.start()
        yield taken
        ended.set()
        thread.join()


def test_the_rate_of_traffic_is_changed(owner: TestClient, by_hand: list[Request], tmp_path: Path) -> None:
    def ask(run: Path, members: Any) -> tuple[int, str]:
        answer = owner.post(f"/api/runs/{run_in(run).id}/rate", json=members)
        return answer.status_code, answer.json().get("error", "")

    directory = tmp_path / "results" / "by-hand"
    assert ask(directory, {"rate": "40k"}) == (200, "")
    assert ask(directory, {"end": True}) == (200, "")
    assert [(one.rate and one.rate.value, one.end) for one in by_hand] == [(40_000, False), (None, True)]
    assert ask(directory, {"rate": "60k"}) == (409, "is too high")
    for members in ({}, {"rate": "many"}, {"rate": "1k", "end": True}, {"x": 1}, {"rate": [1]}, {"end": "perhaps"}):
        status, error = ask(directory, members)
        assert status == 400
        assert (error.partition(": ")[0] in members) == (len(members) == 1), error
    status, error = ask(tmp_path / "results" / "one", {"rate": "1k"})
    assert (status, "nothing is being measured" in error) == (409, True)
    assert len(by_hand) == 2


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ({}, "give a plan or a procedure"),
        ({"procedure": "throughput"}, "give either lab or config"),
        ({"procedure": "x", "lab": "kernel-ipv4"}, "there is no x"),
        ({"procedure": "throughput", "lab": "kernel-ipv4", "options": {"x": "1"}}, "unknown key"),
        ({"procedure": "throughput", "lab": "kernel-ipv4", "options": [1]}, "is not a mapping"),
        ({"procedure": "throughput", "lab": "kernel-ipv4", "shell": "x"}, "unknown: shell"),
        ({"procedure": ["throughput"], "lab": "kernel-ipv4"}, "there is no"),
        ({"plan": "x: ["}, "plan: "),
        ({"plan": 5}, "is not a mapping"),
        ({"plan": "lab: kernel-ipv4"}, "name the procedures"),
        (
            {"plan": "lab: kernel-ipv4\nprocedures:\n  throughput:\n    frame-sizes: [big]\n"},
            "plan: procedures.throughput.frame-sizes: 'big' is neither",
        ),
        (
            {"procedure": "throughput", "lab": "kernel-ipv4", "options": {"duration": 5, "frame-sizes": ["big"]}},
            "options.frame-sizes: 'big' is neither",
        ),
    ],
)
def test_what_is_no_plan_is_refused_with_a_sentence(owner: TestClient, asked: dict[str, Any], text: str) -> None:
    answer = owner.post("/api/runs", json=asked)
    assert answer.status_code == 400
    assert text in answer.json()["error"]
    assert ", line" not in answer.json()["error"]


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../store.sqlite", "../../x.yaml", "a/../../b", "\0", "/proc/self/environ"]
)
def test_nothing_outside_is_reached(owner: TestClient, name: str) -> None:
    assert owner.post("/api/runs", json={"config": name, "procedure": "throughput"}).status_code == 403
    plan = {"config": "Engine.yaml", "procedures": {"latency": {"throughput-from": name}}}
    assert owner.post("/api/runs", json={"plan": json.dumps(plan)}).status_code == 403
    plan = {"config": "Engine.yaml", "all": {"frame-from": f"{name}:1"}, "procedures": {"latency": None}}
    assert owner.post("/api/runs", json={"plan": json.dumps(plan)}).status_code == 403


@pytest.mark.parametrize(
    "path", ["/static/../app.py", "/static/%2e%2e/app.py", "/static//etc/passwd", "/runs/..%2f..%2fetc/report"]
)
def test_no_path_leads_out(reader: TestClient, path: str) -> None:
    assert reader.get(path).status_code == 404


def test_options_that_name_files_are_found_by_themselves() -> None:
    assert {"frame-from", "throughput-from"} <= forms._options_with_files()


def test_the_form_offers_no_option_that_is_always_refused(tmp_path: Path) -> None:
    places, keys = Places(tmp_path, (tmp_path,)), set[str]()
    for procedure in forms.procedures_offered():
        for key in [option["key"] for option in procedure["options"]]:
            forms.plan_of({"procedure": procedure["name"], "lab": "x", "options": {key: "1"}}, places)
            keys.add(key)
    assert "throughput-from" in keys
    assert not keys & {"delays-to", "frame-from", "self-test-from"}


# --- what it follows ------------------------------------------------------------------------------


def test_a_follower_tells_all_trials_once_and_the_progress(server: app.Server, tmp_path: Path) -> None:
    directory = tmp_path / "results" / "one"
    follower = following.Follower(server.runs, run_in(directory))
    told = list(follower.news())
    trials = [members for name, members in told if name == "trial"]
    written = sum(
        json.loads(line)["event"] == "result"
        for journal in directory.glob("*/journal.jsonl")
        for line in journal.read_text().splitlines()
    )
    assert len(trials) == written > 0
    assert {one["verdict"] for one in trials} <= {"valid", "invalid"}
    assert any(counts["delay_histogram"] for one in trials for counts in one["directions"].values())
    assert ("state", "complete") in told
    assert list(follower.news()) == []
    assert follower.progress() is None
    (directory / PROGRESS).write_text('{"case": "84 bytes"}')
    assert follower.progress() == {"case": "84 bytes"}
    assert follower.progress() is None


def test_a_stream_of_events_ends_with_the_server(server: app.Server, tmp_path: Path) -> None:
    follower = following.Follower(server.runs, run_in(tmp_path / "results" / "one"))
    looks = iter([False, False, True])

    async def read() -> list[str]:
        return [text async for text in following.events(follower, lambda: next(looks))]

    texts = asyncio.run(read())
    assert all(text.startswith("event: ") and text.endswith("\n\n") for text in texts)
    assert any(text.startswith("event: state") for text in texts)


# --- anything -------------------------------------------------------------------------------------

ANY = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(
    asked=st.dictionaries(st.sampled_from(["procedure", "options", "lab", "config", "plan", "lab-options", "x"]), ANY)
)
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_answer_of_a_form_is_a_plan_or_refused(asked: dict[str, Any], tmp_path: Path) -> None:
    places = Places(tmp_path, (tmp_path,))
    for make in (lambda: forms.plan_of(asked, places), lambda: forms.plan_from(asked.get("plan"), places)):
        with suppress(Refused):
            assert isinstance(make(), dict)
