"""What artifacts may be called, and where they go. No store is asked."""

from __future__ import annotations

import unicodedata
from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.artifacts import check_name, check_path, place
from headrace.artifacts.names import LAYERS, entry_name, is_path
from headrace.errors import InvalidName
from headrace.model.ids import new_id

JOB = new_id()


def test_a_path_tells_layer_job_and_attempt() -> None:
    assert place("bronze", JOB, 3, "a/b.txt") == f"bronze/{JOB}/3/a/b.txt"
    assert place("bronze", JOB, 3, "a/b.txt", version=2) == f"bronze/{JOB}/3-2/a/b.txt"
    assert check_path(f"bronze/{JOB}/3-2/a/b.txt") == ("bronze", JOB)


@pytest.mark.parametrize(
    "name",
    [
        *("", "/", "/etc/passwd", "..", "../x", "a/../b", "a/..", ".", "./a", "a/./b", "a//b"),
        *("a/", "a\\b", "a\x00b", "a\nb", "\x7f", "\ud800", "x" * 1_025, None, 7, b"x"),
    ],
)
def test_a_name_that_could_lead_elsewhere_is_refused(name: str) -> None:
    with pytest.raises(InvalidName, match=r"artifact name .* is not valid; use a relative path"):
        place("bronze", JOB, 1, name)


def test_an_unknown_layer_is_refused_with_those_that_exist() -> None:
    with pytest.raises(InvalidName, match="bronze, silver, gold, artifacts"):
        place("lead", JOB, 1, "a")


def test_a_long_name_is_kept_under_a_short_one_with_its_ending() -> None:
    path = place("gold", JOB, 1, "한" * 1_000 + ".csv")
    assert len(path.encode()) < 200
    assert path.endswith(".csv")
    assert "sha256-" in path
    assert place("gold", JOB, 1, "한" * 1_000 + ".csv") == path
    assert place("gold", JOB, 1, "한" * 999 + ".csv") != path


def test_nobody_can_take_the_place_of_a_long_name() -> None:
    long = "x" * 500
    taken = PurePosixPath(place("gold", JOB, 1, long)).name
    assert place("gold", JOB, 1, taken) != place("gold", JOB, 1, long)
    assert entry_name("gold", PurePosixPath(entry_name("gold", "y" * 600)).name) != entry_name(
        "gold", "y" * 600
    )


NAMES = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\\"), min_size=1
).filter(lambda name: all(part not in ("", ".", "..") for part in name.split("/")))


@given(NAMES, st.sampled_from(LAYERS), st.integers(0, 2**31))
def test_every_path_stays_below_its_job_and_can_be_stored(
    name: str, layer: str, token: int
) -> None:
    path = place(layer, JOB, token, check_name(name))
    parts = path.split("/")
    assert parts[:3] == [layer, JOB, str(token)]
    assert all(part not in ("", ".", "..") for part in parts)
    assert all(len(part.encode()) <= 255 for part in parts)
    assert len(path.encode()) <= 1_024 - 250 - 1
    assert unicodedata.is_normalized("NFC", path)
    assert is_path(path)
    assert check_path(path) == (layer, JOB)
    assert len(entry_name(layer, name).encode()) <= 600


@given(NAMES, NAMES)
def test_two_names_never_share_a_place(one: str, other: str) -> None:
    same = one == other
    assert (place("gold", JOB, 1, one) == place("gold", JOB, 1, other)) is same
    assert (entry_name("gold", one) == entry_name("gold", other)) is same
