"""The originals of documents, sealed: what is on disk says nothing about what is in them.

A file is sealed in pieces of one mebibyte by AES-GCM. Each piece is bound to its place, and the
last one says that it is the last: pieces cannot be swapped, and none can be cut off unnoticed.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from headrace import InvalidSetting, ValidationError

PIECE = 1 << 20
TAG = 16
NONCE = 12
KEY_BYTES = 32


class Sealer:
    """Seals and opens files with one key."""

    def __init__(self, key: bytes) -> None:
        self._cipher = AESGCM(key)

    def sealed_size(self, size: int) -> int:
        """Return how many bytes a file has when it is sealed."""
        pieces = max(1, -(-size // PIECE))
        return NONCE + size + pieces * TAG

    async def seal(self, content: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yield the sealed file."""
        nonce = os.urandom(NONCE)
        yield nonce
        place = 0
        async for piece, last in _pieces(content, PIECE):
            yield self._cipher.encrypt(_nonce(nonce, place), piece, _place(place, last=last))
            place += 1

    async def open(self, content: AsyncIterator[bytes], name: str) -> AsyncIterator[bytes]:
        """Yield the file as it was. Raises `ValidationError` if it was changed or another key has
        sealed it.
        """
        nonce, place = b"", 0
        async for piece, last in _pieces(_after_nonce(content, got := bytearray()), PIECE + TAG):
            nonce = nonce or bytes(got)
            try:
                yield self._cipher.decrypt(_nonce(nonce, place), piece, _place(place, last=last))
            except InvalidTag:
                raise ValidationError(
                    f"the original of {name!r} cannot be opened: another key has sealed it "
                    "(HEADRACE_INGEST_KEY), or it was changed."
                ) from None
            place += 1


def read_key(given: str) -> bytes:
    """Return the key of the setting."""
    return _decoded(given, "HEADRACE_INGEST_KEY")


def load_key(folder: Path) -> bytes:
    """Return the key of a file in `folder`, which is made if there is none. Several processes may
    do so at once.
    """
    path = folder / "ingest.key"
    folder.mkdir(parents=True, exist_ok=True)
    fresh = folder / f".ingest.key.{os.getpid()}"
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.write(descriptor, base64.b64encode(os.urandom(KEY_BYTES)))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    # A link is made only if there is none: of several processes one decides.
    with contextlib.suppress(FileExistsError):
        path.hardlink_to(fresh)
    fresh.unlink()
    return _decoded(path.read_text(), str(path))


def _decoded(text: str, where: str) -> bytes:
    try:
        key = base64.b64decode(text.strip(), validate=True)
    except binascii.Error:
        key = b""
    if len(key) != KEY_BYTES:
        raise InvalidSetting(
            f"{where} is not a key; make one: openssl rand -base64 {KEY_BYTES}, or leave it out"
        )
    return key


async def _after_nonce(content: AsyncIterator[bytes], nonce: bytearray) -> AsyncIterator[bytes]:
    async for piece in content:
        missing = NONCE - len(nonce)
        nonce += piece[:missing]
        if piece[missing:]:
            yield piece[missing:]


async def _pieces(content: AsyncIterator[bytes], size: int) -> AsyncIterator[tuple[bytes, bool]]:
    """Yield pieces of `size` bytes, each with whether it is the last; at least one."""
    held = bytearray()
    async for part in content:
        held += part
        while len(held) > size:
            yield bytes(held[:size]), False
            del held[:size]
    yield bytes(held), True


def _nonce(nonce: bytes, place: int) -> bytes:
    return (int.from_bytes(nonce, "big") ^ place).to_bytes(NONCE, "big")


def _place(place: int, *, last: bool) -> bytes:
    return b"last" if last else place.to_bytes(8, "big")
