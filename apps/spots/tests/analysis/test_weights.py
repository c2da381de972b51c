"""The file of weights: what was written is read, and damage is told."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import numpy as np
import pytest

from headrace_spots.analysis import DamagedWeights, Sentiment
from headrace_spots.analysis.model.weights import MAGIC, read, write
from headrace_spots.analysis.sentiment import WEIGHTS

LARGEST_FILE = 2_000_000


def some() -> dict[str, np.ndarray[tuple[int, int], np.dtype[np.float32]]]:
    numbers = np.random.default_rng(1).normal(size=(50, 2)).astype(np.float32)
    return {"ko.words": numbers, "en.bias": np.zeros((1, 2), np.float32)}


def test_what_was_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    write(path, {"made_by": "a test"}, some())
    found = read(path)
    assert found.about == {"made_by": "a test"}
    for name, array in some().items():
        np.testing.assert_allclose(found.arrays[name], array, atol=np.abs(array).max() / 60)


def test_the_same_numbers_make_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write(tmp_path / name, {}, some())
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def damaged(path: Path) -> str:
    with pytest.raises(DamagedWeights) as caught:
        Sentiment.read(path)
    assert "Install headrace-spots again" in str(caught.value)
    return str(caught.value)


def test_another_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    path.write_bytes(b"PK\x03\x04 something else")
    assert "it begins with" in damaged(path)
    path.write_bytes(b"")
    assert "it begins with" in damaged(path)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    assert "cannot be read" in damaged(tmp_path / "none")


@pytest.mark.parametrize("place", [9, 14, 30, -1])
def test_a_changed_byte_is_told(tmp_path: Path, place: int) -> None:
    path = tmp_path / "weights"
    write(path, {}, some())
    whole = bytearray(path.read_bytes())
    whole[place] ^= 0x55
    path.write_bytes(bytes(whole))
    damaged(path)


def test_a_cut_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    write(path, {}, some())
    whole = path.read_bytes()
    for length in (4, 12, 15, 40, len(whole) - 1):
        path.write_bytes(whole[:length])
        damaged(path)


@pytest.mark.parametrize(
    "header",
    [
        b"not json",
        b"[]",
        b"{}",
        json.dumps(
            {"about": {}, "arrays": [{"name": "x", "shape": [3, 2], "scales": [1, 1]}]}
        ).encode(),
        json.dumps({"about": {}, "arrays": [{"name": "x", "shape": ["a"], "scales": []}]}).encode(),
    ],
)
def test_a_wrong_header_is_told(tmp_path: Path, header: bytes) -> None:
    path = tmp_path / "weights"
    body = header + zlib.compress(b"12")
    sizes = len(header).to_bytes(4, "little") + zlib.crc32(body).to_bytes(4, "little")
    path.write_bytes(MAGIC + sizes + body)
    damaged(path)


def test_weights_of_another_version_are_told(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    write(path, {}, some())
    with pytest.raises(DamagedWeights, match='do not fit this version for "en"'):
        Sentiment.read(path).of(["good"])


def test_the_file_of_the_package_is_small_and_names_its_sources() -> None:
    assert WEIGHTS.stat().st_size < LARGEST_FILE
    about = read(WEIGHTS).about
    assert "NSMC (CC0)" in about["learnt_from"]
    assert "MIT" in about["learnt_from"]
