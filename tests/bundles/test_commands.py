"""Bundles on the command line: listed, run, checked, and commands of their own."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bundles.conftest import install
from tests.cli.conftest import Cli

pytestmark = pytest.mark.usefixtures("forget")


@pytest.fixture
def cli(shelf: Path, tmp_path: Path) -> Iterator[Cli]:
    folder = tmp_path / "here"
    folder.mkdir()
    made = Cli(folder, f"sqlite:///{folder}/jobs.db")
    yield made
    for process in made.started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def test_bundles_are_listed_with_what_they_bring(cli: Cli) -> None:
    # The applications of this repository may be installed as well.
    listed = cli("bundles", "--json").json["bundles"]
    (found,) = (each for each in listed if each["name"] == "shelf")
    assert (found["name"], found["version"], found["loaded"]) == ("shelf", "1.2", False)
    assert found["summary"] == "Books on a shelf"
    assert found["tasks"] == ["shelf.add", "shelf.weigh"]
    assert {"method": "POST", "path": "/shelf/books", "scope": "write"} in found["routes"]
    assert found["commands"] == ["headrace shelf add", "headrace shelf fail"]
    assert found["settings"]["HEADRACE_SHELF_ROOM"] == 100
    assert found["tables"].endswith("/jobs-shelf.db")
    assert not (cli.folder / "jobs-shelf.db").exists()
    table = cli("bundles", HEADRACE_BUNDLES="shelf").out
    assert re.search(r"shelf +1\.2 +loaded +Books on a shelf", table)
    assert "HEADRACE_SHELF_ROOM = 100" in cli("bundles", "shelf").out
    assert 'did you mean "shelf"' in cli("bundles", "shelv", code=2).err


def test_a_broken_bundle_is_listed_with_its_reason(cli: Cli, shelf: Path) -> None:
    (shelf.parent / "headrace_bad.py").write_text("import not_there\n")
    install(shelf.parent, "bad", "headrace_bad:bundle")
    ran = cli("bundles", code=1, HEADRACE_BUNDLES="bad,shelf")
    assert "bad cannot be loaded: ModuleNotFoundError: No module named 'not_there'" in ran.out
    assert re.search(r"shelf +1\.2 +loaded", ran.out)
    checked = cli("doctor", "--json", code=1, HEADRACE_BUNDLES="bad,shelf").json
    about = [each for each in checked["findings"] if each["subject"] == "bundles"]
    assert {each["level"] for each in about} == {"ok", "error"}
    ran = cli("worker", "--bundle", "bad,shelf", "--exit-when-idle")
    assert 'Bundle "bad" was not loaded' in ran.err
    assert "2 tasks: shelf.add, shelf.weigh" in ran.err


def test_bad_settings_are_reported(cli: Cli) -> None:
    ran = cli("worker", "--bundle", "shelf", "--exit-when-idle", HEADRACE_SHELF_ROOM="0")
    assert "room must be at least 1" in ran.err
    ran = cli("worker", "--bundle", "shelf", "--exit-when-idle", HEADRACE_SHELF_ROMM="1")
    assert 'did you mean "HEADRACE_SHELF_ROOM"' in ran.err


def test_an_unknown_bundle_is_an_error(cli: Cli) -> None:
    assert 'did you mean "shelf"' in cli("worker", "--bundle", "shelv", code=2).err


def test_commands_of_a_bundle(cli: Cli) -> None:
    assert re.search(r"shelf +A shelf", cli("--help").out)
    assert "Add a book" in cli("shelf", "--help").out
    added = cli("shelf", "add", "Emma", "--json", HEADRACE_SHELF_GREETING="hi").json
    assert added["greeting"] == "hi"
    assert "Emma" in cli("shelf", "add", "Emma").out
    assert cli("shelf", "fail", code=1).err == "it failed\n"
    assert "no such option" in cli("shelf", "add", "--nope", code=2).err.lower()
    cli("worker", "--bundle", "shelf", "--exit-when-idle")
    assert cli("jobs", "show", added["job_id"], "--json").json["status"] == "completed"


def test_a_child_process_of_a_worker_has_the_bundle(cli: Cli) -> None:
    cli("enqueue", "shelf.weigh", "title=Emma", HEADRACE_BUNDLES="shelf")
    cli("worker", "--bundle", "shelf", "--exit-when-idle", HEADRACE_SHELF_GREETING="hi")
    (job,) = cli("jobs", "list", "--json").json["jobs"]
    assert job["status"] == "completed", job
    assert job["result"][:2] == [4, "hi"]


def test_migrate_covers_the_tables_of_bundles(cli: Cli) -> None:
    chosen = ("--bundle", "shelf")
    before = cli("migrate", "--check", "--json", *chosen, code=1).json
    assert before["bundles"][0]["pending"] == ["0001", "0002"]
    assert "CREATE TABLE books" in cli("migrate", "--sql", *chosen).out
    assert "Applied: 0001, 0002." in cli("migrate", *chosen).out
    assert cli("migrate", "--check", *chosen).out.count("Nothing is missing.") == 2


def test_up_serves_the_bundle_and_runs_its_demo_once(cli: Cli) -> None:
    ran = cli("up", "--bundle", "shelf", "--exit-when-idle", "--no-server")
    assert "The demo of bundle shelf has begun." in ran.out
    assert "hello Dune" in ran.out
    ran = cli("up", "--bundle", "shelf", "--exit-when-idle", "--no-server")
    assert "demo of bundle" not in ran.out


async def test_a_server_serves_the_bundle_beside_an_app(cli: Cli) -> None:
    import httpx

    (cli.folder / "shop.py").write_text(
        "import headrace\napp = headrace.App()\n@app.task\ndef own() -> int:\n    return 1\n"
    )
    options = ("--app", "shop", "--bundle", "shelf", "--port", "0", "--json")
    process = cli.start("server", *options)
    assert process.stdout is not None
    url = json.loads(process.stdout.readline())["url"]
    async with httpx.AsyncClient(base_url=url) as client:
        assert (await client.get("/shelf/books")).json() == []
        names = {each["name"] for each in (await client.get("/tasks")).json()["tasks"]}
        assert {"own", "shelf.add"} <= names
