"""Wheel and sdist: what they say of themselves, and that they work where nothing else is.

`make dist` tries every extra in an environment of its own; the suite tries none, and all at once.
"""

from __future__ import annotations

import os
import re
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_string
from email.message import Message
from pathlib import Path

import pytest

from headrace.version import __version__
from tests.docs.pages import ROOT
from tests.packaging.test_wheel import NOT_REACHED, UV, run

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# What can be imported with an extra.
MODULES = {
    "postgres": ["headrace.engine.postgres.engine"],
    "redis": ["headrace.engine.redis.engine"],
    "redis-streams": ["headrace.dispatchers.events.adapters.redis_streams"],
    "client": ["headrace.client"],
    "server": ["headrace.server"],
    "cron": ["headrace.dispatchers.cron.dispatcher"],
    "kafka": ["headrace.dispatchers.events.adapters.kafka"],
    "nats": ["headrace.dispatchers.events.adapters.nats"],
    "rabbitmq": ["headrace.dispatchers.events.adapters.rabbitmq"],
    "sqs": ["headrace.dispatchers.events.adapters.sqs"],
    "s3": ["headrace.artifacts.s3"],
    "webhooks": ["headrace.publishing.webhook", "httpx"],
    "workflows": ["headrace.workflows.load", "headrace.config_files"],
    "bundles": ["headrace.bundles.tables", "alembic", "aiosqlite"],
    "encryption": ["headrace.encryption.cipher", "cryptography.hazmat.primitives.ciphers.aead"],
    "otel": ["headrace.tracing.tracer", "opentelemetry.exporter.otlp.proto.http.trace_exporter"],
}
# Without any extra every command can be imported; it says itself what it needs.
BARE = """
import headrace.cli, importlib, pkgutil
for module in pkgutil.walk_packages(headrace.cli.__path__, "headrace.cli."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
"""
MODULES["all"] = [module for modules in MODULES.values() for module in modules]
GIVEN = os.environ.get("HEADRACE_TEST_DIST")


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that `make dist` has built, or one that is built now."""
    if GIVEN:
        return ROOT / GIVEN
    folder = tmp_path_factory.mktemp("dist")
    done = run(ROOT, sys.executable, "-m", "hatchling", "build", "--directory", str(folder))
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Path:
    [found] = dist.glob("*.whl")
    return found


def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as files:
        [name] = [each for each in files.namelist() if each.endswith(".dist-info/METADATA")]
        return message_from_string(files.read(name).decode())


def test_they_say_what_they_are(dist: Path, wheel: Path) -> None:
    checked = run(ROOT, sys.executable, "-m", "twine", "check", "--strict", *map(str, _all(dist)))
    assert checked.returncode == 0, checked.stdout + checked.stderr
    said = metadata(wheel)
    assert (said["Name"], said["Version"]) == ("headrace", __version__)
    assert said["Summary"] == PROJECT["description"]
    assert said["License-Expression"] == "Apache-2.0"
    assert said["Author"] == "The Headrace developers"
    assert said["Requires-Python"] == ">=3.11"
    assert set(said.get_all("Provides-Extra", [])) == set(MODULES)
    assert "## An example" in str(said.get_payload())


def _all(dist: Path) -> list[Path]:
    return sorted([*dist.glob("*.whl"), *dist.glob("*.tar.gz")])


def test_the_sdist_has_what_builds_the_wheel(dist: Path) -> None:
    [sdist] = dist.glob("*.tar.gz")
    with tarfile.open(sdist) as files:
        names = {name.partition("/")[2] for name in files.getnames()}
    sources = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "src" / "headrace").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert sources - names == set()
    top = {name.partition("/")[0] for name in names}
    assert top <= {
        *("src", "pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE", "PKG-INFO"),
        ".gitignore",
    }


def test_all_has_every_extra() -> None:
    extras = PROJECT["optional-dependencies"]
    named = re.findall(r"[a-z0-9-]+", ",".join(re.findall(r"\[(.*?)\]", " ".join(extras["all"]))))
    assert set(named) == set(extras) - {"all"}
    assert set(MODULES) == set(extras)


@pytest.mark.parametrize("extra", [None, *MODULES] if GIVEN else [None, "all"])
def test_a_bare_environment_runs_the_program_of_the_readme(
    wheel: Path, tmp_path: Path, extra: str | None
) -> None:
    made = run(tmp_path, UV, "venv", "--quiet", "--python", sys.executable, "env")
    assert made.returncode == 0, made.stderr
    python = str(tmp_path / "env" / "bin" / "python")
    wanted = f"headrace{'' if extra is None else f'[{extra}]'} @ {wheel.resolve().as_uri()}"
    done = run(tmp_path, UV, "pip", "install", "--quiet", "--python", python, wanted)
    if done.returncode and NOT_REACHED.search(done.stderr):
        pytest.skip(f"no package registry can be reached: {done.stderr[-200:]}")
    assert done.returncode == 0, done.stderr
    [program] = re.findall(
        r"<!-- file: hello\.py -->\n```python\n(.*?)```",
        (ROOT / "README.md").read_text(encoding="utf-8"),
        re.DOTALL,
    )
    (tmp_path / "hello.py").write_text(program, encoding="utf-8")
    ran = run(tmp_path, python, "hello.py")
    assert (ran.returncode, ran.stdout) == (0, "Hello, Ada!\n"), ran.stderr
    imports = "\n".join(f"import {module}" for module in MODULES[extra]) if extra else BARE
    ran = run(tmp_path, python, "-W", "error", "-c", imports)
    assert ran.returncode == 0, ran.stderr
    ran = run(tmp_path, str(Path(python).parent / "headrace"), "doctor", "--app", "hello")
    assert ran.returncode == 0, ran.stdout + ran.stderr
