"""Build the corpus that the search tests ask: Korean bills and English documentation.

    python build_corpus.py CACHE OUT

CACHE keeps what pip fetched (source archives at pinned versions, checked by sha256, and a
virtual environment with the reader of the bills); OUT gets one text file for each document and
nothing else. The same archives give the same files, byte for byte; a second run fetches nothing.
The texts belong to their authors (see SOURCES) and are never committed.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import re
import subprocess
import sys
import tarfile
import venv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PYARROW = "pyarrow==26.0.1"
BILLS = 300
BILL_CHARACTERS = range(700, 3001)
MINIMUM_CHARACTERS = 1200
CHUNK, OVERLAP, MINIMUM_CHUNKS = 500, 128, 2500


@dataclass(frozen=True)
class Source:
    """A source archive on the package index, and which of its pages become documents."""

    package: str
    version: str
    sha256: str
    licence: str
    label: str = ""
    pages: str = ""
    without: str = "$^"

    @property
    def archive(self) -> str:
        """The file name of the source archive."""
        return f"{self.package.replace('-', '_')}-{self.version}.tar.gz"


BILL_SOURCE = Source(
    "korean-assembly-bills",
    "0.1.0",
    "a00e9eb3d2f724d3c232c576074afe901bbf3a74871291e66e81b4afe1616a2f",
    "CC BY 4.0",
)
# Left out: pages that only list names, and notes on releases, which repeat other pages.
SOURCES = (
    Source(
        "flask",
        "3.1.3",
        "0ef0e52b8a9cd932855379197dd8f94047b359ca0a78695144304cb45f87c9eb",
        "BSD-3-Clause",
        "flask",
        r"docs/(.+)\.rst",
        r"docs/(api|index|changes|license|tutorial/(index|next))\.rst",
    ),
    Source(
        "click",
        "8.5.1",
        "9bbfada76703fd1d784b83eea012e3e8c6a001a876543ef104fa56aaaeb072b4",
        "BSD-3-Clause",
        "click",
        r"docs/(.+)\.md",
        r"docs/(api|index|changes|license|upgrade-guides)\.md",
    ),
    Source(
        "jinja2",
        "3.1.6",
        "0137fb05990d35f1275a587e9aee6d56da821fc83491a0fb838183be43f66d6d",
        "BSD-3-Clause",
        "jinja",
        r"docs/(.+)\.rst",
        r"docs/(index|changes|license)\.rst",
    ),
    Source(
        "pikepdf",
        "10.17.0",
        "de4ccaae83628e86c1fd473b384c09c6ff1dd35a583a8dacbf61d2aa4bea843b",
        "MPL-2.0",
        "pikepdf",
        r"docs/((?:topics/|references/)?[^/]+)\.md",
        r"docs/index\.md",
    ),
    Source(
        "python-docx",
        "1.2.0",
        "7bc9d7b7d8a69c9c02ca09216118c86552704edc23bac179283f2e38f86220ce",
        "MIT",
        "docx",
        r"docs/user/(.+)\.rst",
    ),
)


def environment(cache: Path) -> Path:
    """Return the Python of a virtual environment in `cache`, made if it is not there."""
    place = cache / "venv"
    python = place / "bin" / "python"
    if not python.exists():
        venv.create(place, with_pip=True)
    return python


def pip(cache: Path, *arguments: str) -> None:
    """Run pip in the environment of `cache`; raises CalledProcessError if it fails."""
    command = [str(environment(cache)), "-m", "pip", "-q", "--disable-pip-version-check"]
    subprocess.run([*command, *arguments], check=True)


def fetch(cache: Path, source: Source) -> Path:
    """Return the path of the archive of `source`, fetched if needed; refuses other bytes."""
    path = cache / source.archive
    if not path.exists():
        wanted = f"{source.package}=={source.version}"
        pip(
            cache,
            "download",
            "--no-deps",
            f"--no-binary={source.package}",
            f"--dest={cache}",
            wanted,
        )
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != source.sha256:
        raise SystemExit(f"{path.name}: sha256 is {found}, not {source.sha256}")
    return path


def members(archive: Path) -> dict[str, bytes]:
    """Return the text and table files of an archive by their path inside its folder."""
    files: dict[str, bytes] = {}
    with tarfile.open(archive) as tar:
        for member in tar:
            _, _, path = member.name.partition("/")
            if member.isfile() and path.endswith((".rst", ".md", ".parquet")):
                content = tar.extractfile(member)
                assert content is not None
                files[path] = content.read()
    return files


def pages(source: Source, files: dict[str, bytes]) -> dict[str, str]:
    """Return the documents made from documentation pages, name to text."""
    documents: dict[str, str] = {}
    for path, content in files.items():
        match = re.fullmatch(source.pages, path)
        if match is None or re.fullmatch(source.without, path):
            continue
        text = content.decode().replace("\r\n", "\n").strip() + "\n"
        if len(text) >= MINIMUM_CHARACTERS:
            ending = "md" if path.endswith(".md") else "txt"
            documents[f"{source.label}-{match[1].replace('/', '-').lower()}.{ending}"] = text
    return documents


def rows(cache: Path, table: bytes, columns: list[str]) -> list[dict[str, Any]]:
    """Return the rows of a parquet table, with the reader that pip put into `cache`."""
    library = cache / "reader"
    if not (library / "pyarrow").exists():
        pip(cache, "install", "--no-deps", f"--target={library}", PYARROW)
    if str(library) not in sys.path:
        sys.path.insert(0, str(library))
    arrow, parquet = (importlib.import_module(name) for name in ("pyarrow", "pyarrow.parquet"))
    found: list[dict[str, Any]] = parquet.read_table(
        arrow.BufferReader(table), columns=columns
    ).to_pylist()
    return found


def bills(cache: Path, files: dict[str, bytes]) -> dict[str, str]:
    """Return the documents made from bills, one for each law, in an order that nobody chose."""
    texts = {
        row["BILL_ID"]: (row["propose_reason"] or "").strip()
        for row in rows(cache, files["data/bill_texts.parquet"], ["BILL_ID", "propose_reason"])
    }
    every = rows(cache, files["data/bills.parquet"], ["BILL_ID", "BILL_NO", "BILL_NAME"])
    every.sort(key=lambda row: hashlib.sha256(str(row["BILL_NO"]).encode()).hexdigest())
    laws: set[str] = set()
    documents: dict[str, str] = {}
    for row in every:
        title = row["BILL_NAME"].strip()
        law = re.sub(r"\s*(일부|전부)?(개정)?(법률안|안).*$", "", title).strip()
        text = texts.get(row["BILL_ID"], "")
        if law in laws or len(text) not in BILL_CHARACTERS:
            continue
        laws.add(law)
        documents[f"bill-{row['BILL_NO']}.txt"] = f"{title}\n\n{text}\n"
        if len(documents) == BILLS:
            break
    return documents


def build(cache: Path) -> dict[str, str]:
    """Return the whole corpus, name to text, in the order of the names."""
    cache.mkdir(parents=True, exist_ok=True)
    documents = bills(cache, members(fetch(cache, BILL_SOURCE)))
    for source in SOURCES:
        documents |= pages(source, members(fetch(cache, source)))
    return dict(sorted(documents.items()))


def chunks(text: str) -> int:
    """Return into how many chunks of fixed size a text falls."""
    return 1 + max(0, -(-(len(text) - CHUNK) // (CHUNK - OVERLAP)))


def main() -> None:
    """Write the corpus and print its size and its digest."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("cache", type=Path, help="folder that keeps what pip fetched")
    parser.add_argument("out", type=Path, help="folder for the documents; made, or empty")
    arguments = parser.parse_args()
    if arguments.out.exists() and any(arguments.out.iterdir()):
        raise SystemExit(f"{arguments.out} is not empty")
    documents = build(arguments.cache.resolve())
    arguments.out.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    for name, text in documents.items():
        (arguments.out / name).write_text(text, encoding="utf-8", newline="\n")
        digest.update(f"{name}\0{text}\0".encode())
    count = sum(chunks(text) for text in documents.values())
    print(f"{len(documents)} documents, {count} chunks, sha256 {digest.hexdigest()}")
    if count < MINIMUM_CHUNKS:
        raise SystemExit(f"fewer than {MINIMUM_CHUNKS} chunks")


if __name__ == "__main__":
    main()
