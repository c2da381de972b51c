"""Originals are sealed: nothing is seen, swapped or cut off unnoticed."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from headrace import InvalidSetting, ValidationError
from headrace_ingest.store.originals import NONCE, PIECE, TAG, Sealer, load_key, read_key


async def parts_of(content: bytes, size: int = 70_000) -> AsyncIterator[bytes]:
    for start in range(0, len(content), size):
        yield content[start : start + size]


async def seal(sealer: Sealer, content: bytes) -> bytes:
    return b"".join([part async for part in sealer.seal(parts_of(content))])


async def opened(sealer: Sealer, sealed: bytes) -> bytes:
    return b"".join([part async for part in sealer.open(parts_of(sealed), "a.txt")])


@pytest.mark.parametrize("size", [0, 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE])
async def test_what_is_sealed_is_opened(size: int) -> None:
    sealer, content = Sealer(bytes(32)), os.urandom(size)
    sealed = await seal(sealer, content)
    assert len(sealed) == sealer.sealed_size(size)
    assert size < 16 or content[:16] not in sealed
    assert await opened(sealer, sealed) == content


async def test_what_was_changed_is_not_opened() -> None:
    sealer = Sealer(bytes(32))
    sealed = await seal(sealer, os.urandom(3 * PIECE))
    piece = PIECE + TAG
    first, second = sealed[NONCE : NONCE + piece], sealed[NONCE + piece : NONCE + 2 * piece]
    rest = sealed[NONCE + 2 * piece :]
    for changed in (
        sealed[: NONCE + 2 * piece],
        sealed[:-1],
        sealed[:NONCE] + second + first + rest,
        bytes([sealed[0] ^ 1]) + sealed[1:],
        sealed[:-1] + bytes([sealed[-1] ^ 1]),
    ):
        with pytest.raises(ValidationError, match=r"cannot be opened"):
            await opened(sealer, changed)
    with pytest.raises(ValidationError, match=r"another key"):
        await opened(Sealer(bytes(31) + b"1"), sealed)


def test_a_key_is_made_once_and_read_by_others(tmp_path: Path) -> None:
    made = load_key(tmp_path / "new")
    assert load_key(tmp_path / "new") == made
    assert (tmp_path / "new" / "ingest.key").stat().st_mode & 0o777 == 0o600
    assert [each.name for each in (tmp_path / "new").iterdir()] == ["ingest.key"]
    with pytest.raises(InvalidSetting, match=r"HEADRACE_INGEST_KEY is not a key"):
        read_key("short")
