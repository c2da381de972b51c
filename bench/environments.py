"""An environment for each set of packages: the peers' dependencies conflict."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from bench.contenders import Contender

WORK = Path(__file__).parent / ".work"
VENVS = WORK / "venvs"


def python_for(contender: Contender) -> Path:
    """The interpreter of a contender's environment; made when it is not there."""
    if not contender.packages:
        return Path(sys.executable)
    folder = _folder(contender)
    if not (folder / ".ready").exists():
        uv = str(Path(sys.executable).parent / "uv")
        subprocess.run([uv, "venv", "-q", "--clear", "-p", sys.executable, str(folder)], check=True)
        subprocess.run(
            [uv, "pip", "install", "-q", *contender.packages],
            check=True,
            env={**os.environ, "VIRTUAL_ENV": str(folder)},
        )
        (folder / ".ready").touch()
    return folder / "bin" / "python"


def installed(contender: Contender) -> str:
    """The packages that a contender asked for, with the versions that it got."""
    wanted = [_plain(re.split(r"[\[=<>!~ ]", package)[0]) for package in contender.packages]
    versions = {
        _plain(name): version
        for path in _folder(contender).glob("lib/*/site-packages/*.dist-info")
        for name, _, version in [path.name.removesuffix(".dist-info").partition("-")]
    }
    return ", ".join(f"{name} {versions.get(name, '?')}" for name in wanted)


def tidy(contenders: Iterable[Contender]) -> None:
    """Remove environments that nobody uses any more."""
    used = {_folder(contender).name for contender in contenders if contender.packages}
    for folder in VENVS.glob("*"):
        if folder.name not in used:
            shutil.rmtree(folder, ignore_errors=True)


def clean() -> None:
    """Remove every environment. The next run makes those that it needs."""
    shutil.rmtree(WORK, ignore_errors=True)


def _folder(contender: Contender) -> Path:
    name = contender.program.split(".")[-1].removesuffix("_program")
    digest = hashlib.sha256("\n".join(contender.packages).encode()).hexdigest()[:8]
    return VENVS / f"{name}-{digest}"


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
