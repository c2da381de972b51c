"""A process that speaks for others: `python -m headrace_speech.providers.child`.

A question is a frame (its length in four bytes, then JSON); the answer is a frame and then as many
bytes of samples as it says.
"""

from __future__ import annotations

import select
import sys
from typing import BinaryIO

import msgspec

# Nobody pays for a process that nobody asks.
IDLE_SECONDS = 60.0


class Asked(msgspec.Struct, kw_only=True):
    """A text to speak; without one, which voices there are."""

    text: str | None = None
    voice: str = ""


class Answered(msgspec.Struct, kw_only=True, omit_defaults=True):
    """So many bytes of samples follow, or there was an error."""

    size: int = 0
    rate: int = 0
    voices: list[dict[str, str | None]] = []
    variants: list[dict[str, str | None]] = []
    error: str | None = None
    missing: bool = False
    """Whether the library is not installed."""


def read_frame(stream: BinaryIO) -> bytes:
    """Return the next frame; nothing if the other side has closed its end."""
    return stream.read(int.from_bytes(stream.read(4), "big"))


def write_frame(stream: BinaryIO, header: bytes, content: bytes = b"") -> None:
    """Send a frame, and what follows it."""
    stream.write(len(header).to_bytes(4, "big") + header + content)
    stream.flush()


def main() -> None:
    """Serve until the other side closes its end, or asks nothing for a while."""
    source, target = sys.stdin.buffer, sys.stdout.buffer
    # What a library prints must not end up between the answers.
    sys.stdout = sys.stderr
    library = None
    while select.select([source], [], [], IDLE_SECONDS)[0] and (header := read_frame(source)):
        asked = msgspec.json.decode(header, type=Asked)
        content = b""
        try:
            if library is None:
                from headrace_speech.providers.espeak import Espeak  # noqa: PLC0415

                library = Espeak()
            answer = Answered(rate=library.rate)
            if asked.text is None:
                answer.voices, answer.variants = library.voices, library.variants
            else:
                content = library.speak(asked.text, asked.voice)
                answer.size = len(content)
        except ModuleNotFoundError as error:
            answer = Answered(error=str(error), missing=True)
        except Exception as error:
            answer = Answered(error=f"{type(error).__name__}: {error}")
        write_frame(target, msgspec.json.encode(answer), content)


if __name__ == "__main__":
    main()
