"""Process the PDF and Office files in the source packages of four libraries; tell what happened.

    python -m headrace_ingest.real_files --cache FOLDER

The packages are downloaded with pip into the folder, once. Each file goes through the whole
pipeline as a job. It has to complete with text or to fail after one attempt with one sentence:
anything else is listed, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import headrace
from headrace_ingest.bundle import bundle
from headrace_ingest.documents import Documents
from headrace_ingest.service import IngestService
from headrace_ingest.store.records import Status
from headrace_ingest.store.sources import FileSource

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


class FileOutcome(NamedTuple):
    """What became of a file: `text`, the sentence of the error without its name, or `FAULT` and
    what should not have happened.
    """

    package: str
    path: Path
    what: str


async def outcomes(folders: Sequence[Path], **settings: Any) -> list[FileOutcome]:
    """Process all files, each by a job of its own; return what happened. `settings` are those of
    the bundle. Names are not masked: that would only take longer.
    """
    with tempfile.TemporaryDirectory(prefix="headrace-files-") as place:
        app = headrace.App(f"sqlite:///{place}/jobs.db", artifacts=f"{place}/files")
        setup = app.load_bundle(bundle, **{"mask_names": False, **settings})
        async with app:
            documents = Documents(IngestService(setup))
            handed_in = []
            for number, (package, path) in enumerate(_files(folders)):
                async with FileSource(path) as source:
                    # Each has a path of its own: the same file is in several packages.
                    accepted = await documents.add(source, path.name, f"/{package}/{number}")
                handed_in.append((package, path, accepted.document_id))
            await headrace.JobOrchestrator(app).run_until_idle()
            return [
                FileOutcome(package, path, await _outcome(app, documents, document_id))
                for package, path, document_id in handed_in
            ]


def _files(folders: Sequence[Path]) -> Iterator[tuple[str, Path]]:
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.suffix.lower() in ENDINGS and path.is_file():
                yield folder.name, path


async def _outcome(app: headrace.App, documents: Documents, document_id: str) -> str:
    job, document = await app.get(document_id), await documents.get(document_id)
    if document is None or job.status != document.status:
        return f"FAULT the job is {job.status}, the document {document and document.status}"
    if job.attempt != 1:
        return f"FAULT it took {job.attempt} attempts"
    if document.status == Status.COMPLETED and document.chunks:
        return "text"
    error = str(document.error)
    if job.error_type not in ("ParserError", "ValidationError") or not _is_sentence(error):
        return f"FAULT {job.error_type}: {error}"
    return error.split('" ', 1)[-1].removesuffix(".").removeprefix("cannot be read: it ")


def _is_sentence(text: str) -> bool:
    """Return whether a text is one sentence that begins with the name of its file."""
    return text.startswith('"') and text.endswith(".") and text.isprintable() and ". " not in text


def main(arguments: Sequence[str] | None = None) -> int:
    """Write a Markdown table of what happened; return 1 if a file ended in another way."""
    parser = argparse.ArgumentParser(prog="python -m headrace_ingest.real_files")
    parser.add_argument("--cache", type=Path, required=True)
    # What is refused is in the table.
    logging.getLogger("headrace").setLevel(logging.CRITICAL)
    found = asyncio.run(outcomes(download(parser.parse_args(arguments).cache)))
    table = Counter((each.package, each.path.suffix.lower()[1:], each.what) for each in found)
    print("| package | format | files | what happened |")
    print("|---|---|---|---|")
    for (package, ending, what), count in sorted(table.items()):
        print(f"| {package} | {ending} | {count} | {what} |")
    faults = [each for each in found if each.what.startswith("FAULT")]
    for each in faults:
        print(f"{each.path.name}: {each.what}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
