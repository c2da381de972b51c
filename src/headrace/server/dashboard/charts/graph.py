"""Steps and what they need, in layers from left to right.

A step stands one layer behind the last that it needs. Within a layer steps are ordered by where
their neighbours stand (barycentres, a few sweeps to and fro), so that few lines cross.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter

from markupsafe import Markup

from headrace.server.dashboard.charts.svg import element, picture

BOX_WIDTH, BOX_HEIGHT, GAP_X, GAP_Y, EDGE = 150.0, 36.0, 48.0, 14.0, 8.0
SWEEPS = 4
LONGEST_NAME, LONGEST_NOTE = 20, 24


@dataclass(frozen=True)
class Node:
    """A box. `kind` is its class, such as a status; `note` is a second line in small letters.
    `text` is what it says in place of its name.
    """

    name: str
    kind: str
    note: str = ""
    link: str | None = None
    text: str = ""


@dataclass(frozen=True)
class Edge:
    """`after` needs `before`."""

    before: str
    after: str


def graph(title: str, nodes: Sequence[Node], edges: Sequence[Edge]) -> Markup:
    """Return the graph. Raises `graphlib.CycleError` if steps need each other."""
    columns = layers([node.name for node in nodes], edges)
    tallest = max((len(column) for column in columns), default=0)
    height = tallest * (BOX_HEIGHT + GAP_Y) - GAP_Y + 2 * EDGE if tallest else 2 * EDGE
    places: dict[str, tuple[float, float]] = {}
    for number, column in enumerate(columns):
        used = len(column) * (BOX_HEIGHT + GAP_Y) - GAP_Y
        for row, name in enumerate(column):
            y = (height - used) / 2 + row * (BOX_HEIGHT + GAP_Y)
            places[name] = (EDGE + number * (BOX_WIDTH + GAP_X), y)
    width = 2 * EDGE + len(columns) * (BOX_WIDTH + GAP_X) - GAP_X if columns else 2 * EDGE
    lines = [_line(places[edge.before], places[edge.after]) for edge in edges]
    return picture(
        title, width, height, *lines, *(_box(node, places[node.name]) for node in nodes),
        kind="graph", small=True, linked=any(node.link for node in nodes),
    )  # fmt: skip


def layers(names: Sequence[str], edges: Sequence[Edge]) -> list[list[str]]:
    """Return the names by layer, each layer in an order with few crossings."""
    needs: dict[str, list[str]] = {name: [] for name in names}
    leads_to: dict[str, list[str]] = defaultdict(list)
    for edge in edges:
        needs[edge.after].append(edge.before)
        leads_to[edge.before].append(edge.after)
    depth: dict[str, int] = {}
    for name in TopologicalSorter(needs).static_order():
        depth[name] = 1 + max((depth[each] for each in needs[name]), default=-1)
    columns: list[list[str]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for name in names:
        columns[depth[name]].append(name)
    for sweep in range(SWEEPS):
        forward = sweep % 2 == 0
        for number in range(len(columns)) if forward else reversed(range(len(columns))):
            _sort(columns, number, needs if forward else leads_to)
    return columns


def _sort(columns: list[list[str]], number: int, neighbours: Mapping[str, list[str]]) -> None:
    place = {name: row - len(column) / 2 for column in columns for row, name in enumerate(column)}

    def centre(name: str) -> float:
        near = neighbours.get(name) or [name]
        return sum(place[each] for each in near) / len(near)

    columns[number].sort(key=centre)


def _line(begin: tuple[float, float], end: tuple[float, float]) -> Markup:
    x1, y1 = begin[0] + BOX_WIDTH, begin[1] + BOX_HEIGHT / 2
    x2, y2 = end[0], end[1] + BOX_HEIGHT / 2
    bends = ((x1 + GAP_X / 2, y1), (x2 - GAP_X / 2, y2), (x2, y2))
    path = f"M{x1:.1f} {y1:.1f}C" + " ".join(f"{x:.1f} {y:.1f}" for x, y in bends)
    return element("path", class_="edge", d=path, fill="none")


def _box(node: Node, place: tuple[float, float]) -> Markup:
    x, y = place
    whole = node.text or node.name
    name = whole if len(whole) <= LONGEST_NAME else whole[: LONGEST_NAME - 1] + "…"
    note = node.note if len(node.note) <= LONGEST_NOTE else node.note[: LONGEST_NOTE - 1] + "…"
    first = y + (BOX_HEIGHT / 2 + 4 if not node.note else 15)
    parts = [
        element("title", f"{whole}: {node.note or node.kind}"),
        element("rect", class_=f"box {node.kind}", x=x, y=y, width=BOX_WIDTH, height=BOX_HEIGHT,
                rx=4),
        element("text", name, class_="label", x=x + 10, y=first),
    ]  # fmt: skip
    if node.note:
        parts.append(element("text", note, class_="note", x=x + 10, y=y + 29))
    group = element("g", *parts)
    return group if node.link is None else element("a", group, href=node.link)
