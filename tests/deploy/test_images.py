"""The Dockerfile: linted, made only of what is there, and built where an engine is."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tests.deploy.files import API, DEPLOY, PROBES, ROOT, compose, ours

FILE = DEPLOY / "docker" / "Dockerfile"
TEXT = FILE.read_text("utf-8")
INSTRUCTIONS = re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", TEXT, flags=re.MULTILINE)).splitlines()


def run(*command: str) -> subprocess.CompletedProcess[str]:
    """Run a program at the root of the repository to its end."""
    return subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True)


def argument(name: str) -> list[str]:
    """The default of a build argument, as words."""
    found = re.search(rf"^ARG {name}=(.*)$", TEXT, re.MULTILINE)
    assert found is not None
    return re.split(r"[ ,]", found[1])


def test_the_linter_has_nothing_to_say() -> None:
    hadolint = str(Path(sys.executable).parent / "hadolint")
    checked = run(hadolint, "--failure-threshold", "info", str(FILE))
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert checked.stdout == ""


def test_extras_and_bundles_that_are_installed_exist() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert set(argument("EXTRAS")) <= set(project["project"]["optional-dependencies"])
    settings = compose()["services"]["server"]["environment"]
    assert argument("BUNDLES") == settings["HEADRACE_BUNDLES"].split(",")
    for bundle in argument("BUNDLES"):
        assert (ROOT / "apps" / bundle / "pyproject.toml").is_file()


def test_what_is_copied_exists_and_is_not_ignored() -> None:
    lines = [line.strip() for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines()]
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*", "only what is named is sent to the engine"
    copied = [
        source
        for line in INSTRUCTIONS
        if line.startswith("COPY ") and "--from" not in line
        for source in line.split()[1:-1]
    ]
    assert copied
    for source in copied:
        assert (ROOT / source).exists()
        ignored = False
        for rule in rules:
            if fnmatch(source, rule.removeprefix("!")):
                ignored = not rule.startswith("!")
        assert not ignored, source


def test_the_images_run_without_root_and_are_small_by_their_stages() -> None:
    stages = [line for line in INSTRUCTIONS if line.startswith("FROM ")]
    assert [stage.split()[-1] for stage in stages] == ["build", "headrace", "browser"]
    targets = {service["build"]["target"] for service in ours(compose()).values()}
    assert targets == {"headrace", "browser"}
    # The last user of each image.
    users = [line for line in INSTRUCTIONS if line.startswith("USER ")]
    assert [users[0], users[-1]] == ["USER 10001:10001"] * 2
    assert f"EXPOSE {API} {PROBES}" in INSTRUCTIONS
    assert 'CMD ["headrace", "worker"]' in INSTRUCTIONS
    assert not re.search(r"https?://", "\n".join(INSTRUCTIONS))


@pytest.mark.timeout(1800)
def test_the_images_can_be_built() -> None:
    engine = shutil.which("docker") or shutil.which("podman")
    if engine is None or run(engine, "info").returncode != 0:
        pytest.skip("there is no container engine here")
    if run(engine, "pull", f"python:{argument('PYTHON')[0]}-slim").returncode != 0:
        pytest.skip("no package registry of images can be reached")
    for target in ("headrace", "browser"):
        built = run(engine, "build", "-f", str(FILE), "--target", target, "-t", f"{target}:t", ".")
        assert built.returncode == 0, built.stderr[-3000:]
    confined = ("run", "--rm", "--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL")
    shown = run(engine, *confined, "headrace:t", "headrace", "version")
    assert shown.returncode == 0, shown.stderr
