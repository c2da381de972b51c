"""Charts: well-formed pictures of any values, with hostile text as text."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from graphlib import CycleError
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.server.dashboard.charts import (
    Edge,
    GanttRow,
    Line,
    Node,
    chart,
    distribution,
    dots,
    gantt,
    graph,
    sparkline,
)
from headrace.server.dashboard.charts.graph import layers
from headrace.server.dashboard.charts.scale import short, ticks, time_ticks

NOON = datetime(2026, 3, 29, 12, tzinfo=UTC)
HOSTILE = "<script>alert(1)</script>\"'&"
values = st.lists(st.none() | st.floats(0, 1e12) | st.integers(0, 10**9), max_size=80)


def parsed(picture: str) -> ElementTree.Element:
    """The picture, which has to be XML with a title, and no style attributes."""
    root = ElementTree.fromstring(picture)
    assert root.tag == "svg"
    assert root.attrib["aria-label"] == root[0].text
    assert not any("style" in each.attrib for each in root.iter())
    assert "nan" not in picture.lower()
    assert "inf" not in picture.lower().replace("info", "")
    return root


@given(st.lists(values, max_size=4), st.booleans())
@settings(max_examples=60, deadline=None)
def test_any_values_make_a_picture(found: list[list[float | None]], stacked: bool) -> None:
    lines = [Line(HOSTILE, "completed", each) for each in found]
    root = parsed(chart("jobs", lines, NOON, NOON + timedelta(hours=1), stacked=stacked))
    assert len(list(root.iter("path"))) == len(lines)
    for each in found:
        parsed(sparkline(HOSTILE, each))


def test_a_stack_adds_up() -> None:
    lines = [Line("a", "completed", [1, 2, 3]), Line("b", "failed", [1, None, 1])]
    root = parsed(chart("jobs", lines, NOON, NOON + timedelta(minutes=2), stacked=True))
    labels = [each.text for each in root.iter("text") if "data-time" not in each.attrib]
    assert labels == ["0", "1", "2", "3", "4"]
    below, above = [each.attrib["d"] for each in root.iter("path")]
    # The top of the first is the floor of the second.
    top = below.removesuffix("Z").split("L")[:3]
    floor = above.removesuffix("Z").split("L")[3:]
    assert [each.removeprefix("M") for each in top] == floor[::-1]


def test_a_gap_lifts_the_pen() -> None:
    root = parsed(sparkline("x", [1, None, 2, 3]))
    [path] = root.iter("path")
    assert path.attrib["d"].count("M") == 2


@pytest.mark.parametrize("most", [0, 1, 3, 7, 10, 99, 1_234, 0.003, 0.7, 1e9])
def test_ticks_are_few_round_and_reach_the_top(most: float) -> None:
    found = ticks(most)
    assert found[0] == 0
    assert found[-1] >= most
    assert 2 <= len(found) <= 7
    if float(most).is_integer():
        assert all(float(each).is_integer() for each in found)


def test_times_on_an_axis_are_round() -> None:
    start = NOON + timedelta(minutes=7, seconds=13)
    for length in (timedelta(minutes=5), timedelta(hours=1), timedelta(days=1), timedelta(days=90)):
        found = time_ticks(start, start + length)
        assert 2 <= len(found) <= 8
        assert all(start <= each <= start + length for each in found)
        assert all(each.second == 0 for each in found)


def test_numbers_on_an_axis_are_short() -> None:
    assert [short(each) for each in (0, 0.25, 12, 1_500, 20_000_000)] == [
        "0", "0.25", "12", "1.5k", "20M",
    ]  # fmt: skip


def test_bars_and_marks_take_any_text() -> None:
    root = parsed(distribution("run time", [(HOSTILE, 0), ("1 s", 5), ("2 s", 10**9)]))
    assert [float(each.attrib["height"]) > 0 for each in root.iter("rect")] == [False, True, True]
    parsed(distribution("nothing", []))
    root = parsed(dots("last runs", [("completed", HOSTILE), ("failed", "b"), ("odd", "c")]))
    assert [each.text for each in root.iter("title")][1:] == [HOSTILE, "b", "c"]


def test_a_gantt_shows_waiting_and_running() -> None:
    rows = [
        GanttRow("a", "completed", NOON, NOON + timedelta(seconds=2), "a took 2 s", due=NOON),
        GanttRow(HOSTILE * 3, "pending", None, NOON + timedelta(seconds=5), "waits", due=NOON),
        GanttRow("now", "running", NOON, NOON, "just begun", link="/ui/jobs/1?a=1&b=2"),
    ]
    root = parsed(gantt("run", rows))
    assert len(list(root.iter("a"))) == 1
    assert len([each for each in root.iter("rect") if each.attrib["class"] == "waited"]) == 2
    parsed(gantt("nothing", []))
    parsed(gantt("one", [GanttRow("a", "x", NOON, NOON, "a")]))


def test_steps_stand_behind_what_they_need() -> None:
    edges = [Edge("a", "b"), Edge("a", "c"), Edge("b", "d"), Edge("c", "d"), Edge("a", "d")]
    assert layers(["d", "c", "b", "a"], edges) == [["a"], ["c", "b"], ["d"]]
    nodes = [Node(name, "completed", note="2 s", link="/x") for name in "abcd"]
    root = parsed(graph("workflow", nodes, edges))
    assert len(list(root.iter("rect"))) == 4
    assert len([each for each in root.iter("path") if each.attrib["class"] == "edge"]) == 5
    parsed(graph("nothing", [], []))
    with pytest.raises(CycleError):
        layers(["a", "b"], [Edge("a", "b"), Edge("b", "a")])


def test_lines_that_need_not_cross_do_not() -> None:
    names = ["a0", "a1", "a2", "b0", "b1", "b2"]
    edges = [Edge("a0", "b2"), Edge("a1", "b1"), Edge("a2", "b0")]
    first, second = layers(names, edges)
    assert [name[1] for name in second] == [str(2 - int(name[1])) for name in first]
