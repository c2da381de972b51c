"""The bundle of the how-to page, installed by an installer into an environment of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from pathlib import Path

from tests.docs.pages import DOCS, ROOT, blocks, clean_environment

PAGE = DOCS / "how-to" / "bundles.md"
FILES = {"pyproject.toml", "headrace_shelf.py"}
LIMIT = 90
WORK = """
import asyncio, headrace

async def main():
    async with headrace.App("sqlite:///shelf.db", bundles=["shelf"]) as app:
        job = await app.enqueue("shelf.add", {"title": "Emma"})
        await headrace.JobOrchestrator(app).run_until_idle()
        print(await app.result(job.id, 10))

asyncio.run(main())
"""


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
    assert run(tmp_path, str(python), "-c", WORK) == "Emma, one of at most 100\n"
