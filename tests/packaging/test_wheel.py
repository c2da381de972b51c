"""The wheel has all that a server needs, and serves the dashboard with its extra alone."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path
from urllib.parse import urljoin

import httpx
import pytest

from tests.docs.pages import ROOT, clean_environment
from tests.server.conftest import address_of
from tests.support.processes import Process

UV = str(Path(sys.executable).parent / "uv")
# Longer than pip would wait for a slow registry.
LIMIT = 100
FOREIGN = re.compile(r"\.min\.|(^|/)(vendor|vendored|third_party|node_modules|dist)/")
LONGEST_LINE = 400
NOT_REACHED = re.compile(
    r"error sending request|dns error|connect|timed out|network|Failed to fetch", re.IGNORECASE
)


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command as somebody does who has set nothing up."""
    environment = {
        name: value for name, value in clean_environment().items() if name != "PYTHONPATH"
    }
    return subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this tree."""
    folder = tmp_path_factory.mktemp("dist")
    build = (sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory")
    done = run(ROOT, *build, str(folder))
    assert done.returncode == 0, done.stdout + done.stderr
    [built] = folder.glob("*.whl")
    return built


def test_the_wheel_has_every_file_of_the_package(wheel: Path) -> None:
    sources = ROOT / "src"
    wanted = {
        str(path.relative_to(sources))
        for path in (sources / "headrace").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    with zipfile.ZipFile(wheel) as files:
        names = set(files.namelist())
    assert wanted - names == set()
    for ending in (".html", ".css", ".js", ".svg", ".sql", ".lua", "py.typed"):
        assert any(name.endswith(ending) for name in names), ending
    # Only the package: no tests, no pictures of the documentation.
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"headrace"}


def test_no_script_and_no_style_is_of_others_or_made_by_a_tool() -> None:
    listed = run(ROOT, "git", "ls-files", "*.js", "*.mjs", "*.css")
    if listed.returncode:
        pytest.skip("this is no clone of the repository")
    names = listed.stdout.split()
    assert any(name.endswith("dashboard/static/morph.js") for name in names)
    for name in names:
        assert not FOREIGN.search(name), name
        # What people write has short lines, and comments.
        longest = max(map(len, (ROOT / name).read_text("utf-8").splitlines()), default=0)
        assert longest <= LONGEST_LINE, (name, longest)


async def test_a_wheel_alone_serves_the_dashboard(wheel: Path, tmp_path: Path) -> None:
    made = run(tmp_path, UV, "venv", "--quiet", "--python", sys.executable, "env")
    assert made.returncode == 0, made.stderr
    python = tmp_path / "env" / "bin" / "python"
    install = (UV, "pip", "install", "--quiet", "--python", str(python))
    done = run(tmp_path, *install, f"headrace[server] @ {wheel.as_uri()}")
    if done.returncode and NOT_REACHED.search(done.stderr):
        pytest.skip(f"no package registry can be reached: {done.stderr[-200:]}")
    assert done.returncode == 0, done.stderr
    kept = {name: value for name, value in clean_environment().items() if name != "PYTHONPATH"}
    command = [str(python.parent / "headrace"), "server", "--app", "shop", "--port", "0", "--json"]
    (tmp_path / "shop.py").write_text("import headrace\n\napp = headrace.App()\n")
    server = Process(command, folder=tmp_path, environment=kept)
    try:
        async with httpx.AsyncClient(base_url=await address_of(server), timeout=30) as browser:
            page = await browser.get("/ui/")
            assert page.status_code == 200, page.text
            assert "Nothing has run here yet." in page.text
            loaded = re.findall(r'(?:src|href)="([^"]+\.(?:js|css|svg)[^"]*)"', page.text)
            assert {Path(each.partition("?")[0]).suffix for each in loaded} == {".js", ".svg"}
            assert "<style>:root" in page.text
            for each in loaded:
                assert (await browser.get(urljoin("/ui/", each))).status_code == 200, each
            for path in ("/ui/jobs", "/ui/system", "/docs", "/openapi.json"):
                assert (await browser.get(path)).status_code == 200, path
    finally:
        server.destroy()
