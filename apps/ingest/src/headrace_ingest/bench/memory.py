"""What a worker is given to measure its memory with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from headrace_ingest.bench.documents import write_files
from headrace_ingest.bench.files import large_pdf

LARGE_MEBIBYTES = 200
ONE = "one document"
LARGE = f"a PDF of {LARGE_MEBIBYTES} MiB"
HUNDRED = "100 documents at once"


def loads(folder: Path) -> Iterator[tuple[str, Sequence[Path]]]:
    """Yield what each is called, and its files."""
    hundred = write_files(folder, 100)
    yield ONE, hundred[:1]
    large = folder / "large.pdf"
    large_pdf(large, LARGE_MEBIBYTES)
    yield LARGE, [large]
    large.unlink()
    yield HUNDRED, hundred
