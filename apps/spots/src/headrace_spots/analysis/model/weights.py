"""The file of learnt numbers: arrays of small integers with their scales, and who made them.

    8 bytes   "HRSPOTS1"
    4 bytes   length of the header, little-endian
    4 bytes   CRC-32 of all that follows
    header    JSON: {"about": {…}, "arrays": [{"name", "shape", "scales"}, …]}
    rest      zlib: the arrays one after the other, int8, C order

A number is the square of its int8 / 127, with its sign, times the scale of its column: most weights
are small, and squares keep them apart. Nothing in the file is executed.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from headrace import HeadraceError
from headrace_spots.analysis.model.ngrams import Floats

MAGIC = b"HRSPOTS1"
LARGEST = 64 * 2**20
_FULL = 127


class DamagedWeights(HeadraceError):
    """The file with the learnt weights cannot be read; install the package again."""


class Weights(NamedTuple):
    """Arrays by their names, and what is known of their making."""

    about: dict[str, Any]
    arrays: dict[str, Floats]


def write(path: Path, about: Mapping[str, Any], arrays: Mapping[str, Floats]) -> None:
    """Write matrices as int8, each column with a scale of its own. The same in, the same bytes."""
    told, parts = [], []
    for name, array in arrays.items():
        scales = np.maximum(np.abs(array).max(axis=0), 1e-12)
        roots = np.sign(array) * np.sqrt(np.abs(array) / scales)
        parts.append(np.rint(roots * _FULL).astype(np.int8).tobytes())
        told.append(
            {"name": name, "shape": array.shape, "scales": [float(f"{by:.6g}") for by in scales]}
        )
    header = json.dumps({"about": about, "arrays": told}, ensure_ascii=False).encode()
    body = header + zlib.compress(b"".join(parts), 9)
    path.write_bytes(
        MAGIC + len(header).to_bytes(4, "little") + zlib.crc32(body).to_bytes(4, "little") + body
    )


def read(path: Path) -> Weights:
    """Return what `write` has written; `DamagedWeights` says what is wrong with another file."""
    try:
        whole = path.read_bytes()
    except OSError as error:
        raise _damaged(path, f"it cannot be read ({error.strerror})") from error
    if whole[:8] != MAGIC:
        raise _damaged(path, f"it begins with {whole[:8]!r}, not {MAGIC!r}")
    length, checksum = (int.from_bytes(whole[at : at + 4], "little") for at in (8, 12))
    body = whole[16:]
    if zlib.crc32(body) != checksum:
        raise _damaged(path, "its checksum is wrong")
    try:
        header = json.loads(body[:length])
        shapes = {told["name"]: tuple(map(int, told["shape"])) for told in header["arrays"]}
        scales = {told["name"]: np.array(told["scales"], np.float32) for told in header["arrays"]}
        size = sum(map(prod, shapes.values()))
        numbers = zlib.decompressobj().decompress(body[length:], LARGEST)
        about = dict(header["about"])
    except (ValueError, KeyError, TypeError, zlib.error) as error:
        raise _damaged(path, f"its header or its numbers are wrong ({error!r})") from error
    if len(numbers) != size:
        raise _damaged(path, f"it has {len(numbers)} numbers, not {size}")
    arrays, begin = {}, 0
    for name, shape in shapes.items():
        end = begin + prod(shape)
        roots = np.frombuffer(numbers[begin:end], np.int8).reshape(shape).astype(np.float32) / _FULL
        arrays[name] = np.asarray(roots * np.abs(roots) * scales[name], np.float32)
        begin = end
    return Weights(about, arrays)


def _damaged(path: Path, reason: str) -> DamagedWeights:
    return DamagedWeights(
        f"The weights {path.name} are damaged: {reason}. Install headrace-spots again."
    )
