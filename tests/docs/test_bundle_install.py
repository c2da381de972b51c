"""The bundle of the how-to page, installed by an installer into an environment of its own."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable
from pathlib import Path

import httpx

from tests.docs.pages import DOCS, ROOT, blocks, clean_environment
from tests.support.servers import free_port

PAGE = DOCS / "how-to" / "bundles.md"
FILES = {
    "pyproject.toml",
    "headrace_shelf/__init__.py",
    "headrace_shelf/tasks.py",
    "headrace_shelf/routes.py",
    "headrace_shelf/commands.py",
    "headrace_shelf/migrations/0001_books.py",
    "headrace_shelf/page/index.html",
    "headrace_shelf/page/shelf.js",
}
LIMIT = 90
STORE = "sqlite:///shelf.db"
# What the demo has put there.
BOOKS = ["Emma", "Persuasion"]


def run(folder: Path, *command: str) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == 0, f"{command}:\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_the_bundle_of_the_page_can_be_installed_and_is_found(tmp_path: Path) -> None:
    package = tmp_path / "headrace-shelf"
    package.mkdir()
    shown = {block.value: block.text for block in blocks(PAGE) if block.mark == "file"}
    assert set(shown) == FILES
    for name, text in shown.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text, encoding="utf-8")
    uv = str(Path(sys.executable).parent / "uv")
    run(tmp_path, uv, "venv", "--quiet", "--python", sys.executable, "env")
    python = tmp_path / "env" / "bin" / "python"
    run(
        tmp_path,
        uv,
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--python",
        str(python),
        str(package),
    )
    # Headrace itself, with what it needs, is the one that is tested.
    (places,) = (tmp_path / "env" / "lib").glob("python*/site-packages")
    paths = [str(ROOT / "src"), sysconfig.get_path("purelib")]
    (places / "headrace.pth").write_text("\n".join(paths))
    listed = json.loads(run(tmp_path, str(python), "-m", "headrace.cli", "bundles", "--json"))
    (shelf,) = [each for each in listed["bundles"] if each["name"] == "shelf"]
    assert shelf["version"] == "1.0"
    port = free_port()
    headrace = (str(python), "-m", "headrace.cli")
    with (tmp_path / "up.log").open("wb") as log:
        up = subprocess.Popen(
            [*headrace, "up", "--bundle", "shelf", "--port", str(port), "--url", STORE],
            cwd=tmp_path,
            env=clean_environment(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=LIMIT) as client:
            check_running(client, (tmp_path / "up.log").read_text)
        store = ("--url", STORE, "--json")
        listed = json.loads(run(tmp_path, *headrace, "shelf", "list", *store))
        assert listed == {"books": [*BOOKS, "Sanditon"]}
        assert "shelf-nightly" in run(tmp_path, *headrace, "schedules", "list", *store)
    finally:
        up.terminate()
        up.wait(LIMIT)


def check_running(client: httpx.Client, log: Callable[[], str]) -> None:
    """The demo has filled the table; a route adds to it; the page is there with its script."""

    def until(condition: Callable[[], bool]) -> None:
        end = time.monotonic() + LIMIT
        while True:
            with contextlib.suppress(httpx.TransportError):
                if condition():
                    return
            assert time.monotonic() < end, log()
            time.sleep(0.1)

    until(lambda: client.get("/shelf/books").json() == BOOKS)
    answer = client.post("/shelf/books", params={"title": "Sanditon"})
    assert answer.status_code == 202, answer.text
    until(lambda: client.get("/shelf/books").json() == [*BOOKS, "Sanditon"])
    # The handler writes the row before its job is done.
    address = f"/jobs/{answer.json()['job_id']}"
    until(lambda: client.get(address).json()["status"] == "completed")
    assert client.get(address).json()["result"] == "Sanditon, one of at most 100"
    assert "shelf.js" in client.get("/shelf/").text
    assert "replaceChildren" in client.get("/shelf/shelf.js").text
