from __future__ import annotations

from typing import Any

import pytest

from headrace.errors import HeadraceError, InvalidArguments, InvalidSetting
from headrace.model.limits.lane import Lane


def test_a_lane_is_read_from_the_arguments() -> None:
    assert Lane("user:{user_id}").place({"user_id": 7, "other": 1}) == "user:7"
    assert Lane("{a}/{b}").place({"a": "물", "b": True}) == "물/True"
    assert Lane("fixed").place({}) == "fixed"


def test_width_one_holds_and_wider_yields_unless_told() -> None:
    assert Lane("a").hold
    assert not Lane("a", 3).hold
    assert Lane("a", 3, "hold").hold
    assert not Lane("a", 1, "yield").hold


@pytest.mark.parametrize("template", ["{}", "{a.b}", "{a[0]}", "{a!r}", "{a:>5}", "{", "a}"])
def test_a_template_reads_plain_names_only(template: str) -> None:
    with pytest.raises(InvalidSetting, match="lane template"):
        Lane(template)


@pytest.mark.parametrize("bad", [{"width": 0}, {"width": 1.5}, {"on_retry": "maybe"}])
def test_bad_lanes_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(InvalidSetting):
        Lane("a", **bad)


@pytest.mark.parametrize("value", [None, 1.5, [1], {"a": 1}])
def test_only_plain_values_make_a_lane(value: Any) -> None:
    with pytest.raises(InvalidArguments, match="user_id"):
        Lane("{user_id}").place({"user_id": value})


@pytest.mark.parametrize("value", ["", "a\nb", "x" * 600, "\ud800"])
def test_lane_names_must_be_usable_text(value: str) -> None:
    with pytest.raises(HeadraceError):
        Lane("{v}").place({"v": value})
