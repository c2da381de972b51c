"""An environment for each set of packages: the peers' dependencies conflict."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

from bench.contenders import Contender

WORK = Path(__file__).parent / ".work"


def python_for(contender: Contender) -> Path:
    """The interpreter of a contender's environment; made when it is not there."""
    if not contender.packages:
        return Path(sys.executable)
    name = contender.program.split(".")[-1].removesuffix("_program")
    digest = hashlib.sha256("\n".join(contender.packages).encode()).hexdigest()[:8]
    folder = WORK / "venvs" / f"{name}-{digest}"
    python = folder / "bin" / "python"
    if not (folder / ".ready").exists():
        uv = str(Path(sys.executable).parent / "uv")
        subprocess.run([uv, "venv", "-q", "--clear", "-p", sys.executable, str(folder)], check=True)
        subprocess.run(
            [uv, "pip", "install", "-q", *contender.packages],
            check=True,
            env={**os.environ, "VIRTUAL_ENV": str(folder)},
        )
        (folder / ".ready").touch()
    return python
