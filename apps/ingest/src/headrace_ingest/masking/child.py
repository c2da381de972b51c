"""A process that finds personal data for a worker: `python -m headrace_ingest.masking.child`.

The dictionary of Korean takes seconds to load and lets no other thread run meanwhile, so it is not
loaded where leases are renewed.
"""

from __future__ import annotations

import sys

import msgspec

from headrace_ingest.masking.kinds import Span
from headrace_ingest.masking.mask import find
from headrace_ingest.processes import begin_answers, read_frame, write_frame


class Asked(msgspec.Struct, kw_only=True):
    """A text follows, in UTF-8 and with so many bytes."""

    size: int


class Found(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The personal data in the text, or the kind of error: its words may repeat the text."""

    spans: list[Span] = []
    error: str | None = None


def main() -> None:
    """Serve until the other side closes its end."""
    source, target = sys.stdin.buffer, sys.stdout.buffer
    # What a library prints must not end up between the answers.
    sys.stdout = sys.stderr
    begin_answers(target)
    while header := read_frame(source):
        asked = msgspec.json.decode(header, type=Asked)
        text = source.read(asked.size).decode("utf-8")
        try:
            found = Found(spans=find(text))
        except Exception as error:  # told without its words
            found = Found(error=type(error).__name__)
        write_frame(target, msgspec.json.encode(found))


if __name__ == "__main__":
    main()
