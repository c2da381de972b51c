"""A run in pictures: the graph of its steps, what ran when, and the same as text."""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec
from markupsafe import Markup

from headrace.model.job import Job
from headrace.server.dashboard.charts import Edge, GanttRow, Node, gantt, graph
from headrace.server.dashboard.charts.graph import layers
from headrace.server.dashboard.words import duration
from headrace.workflows.steps import RunView, StepView

# A graph with more boxes helps nobody: steps are drawn together until it has fewer.
MOST_BOXES = 200
MOST_BARS = 50
# What runs grows by so much at a time, so that a picture does not change with every look.
GRAIN = timedelta(seconds=5)
OVER = ("completed", "skipped")
# The status of several steps in one box is the first of these that one of them has.
WORST = ("failed", "running", "cancelled", "pending", "skipped", "completed", "step")


class GraphStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step in a graph. A workflow that does not run has steps without a status."""

    id: str
    task: str
    needs: Sequence[str] = ()
    status: str = "step"
    note: str = ""
    link: str | None = None


class StepGraph(msgspec.Struct, frozen=True):
    """The picture, the steps by layer, and how many of them are drawn together."""

    picture: Markup
    layers: list[list[GraphStep]]
    together: int


def step_graph(title: str, steps: Sequence[GraphStep]) -> StepGraph:
    """Return the graph of these steps, with some drawn together if there are too many."""
    by_id = {step.id: step for step in steps}
    edges = [(needed, step.id) for step in steps for needed in step.needs if needed in by_id]
    columns = _columns(tuple(by_id), tuple(edges))
    depth = {name: number for number, column in enumerate(columns) for name in column}
    box = _boxes(steps, depth, len(columns))
    inside: dict[str, list[GraphStep]] = defaultdict(list)
    for step in steps:
        inside[box[step.id]].append(step)
    nodes = [_node(name, several) for name, several in inside.items()]
    lines = dict.fromkeys((box[a], box[b]) for a, b in edges if box[a] != box[b])
    return StepGraph(
        graph(title, nodes, [Edge(*each) for each in lines]),
        [[by_id[name] for name in column] for column in columns],
        sum(len(several) for several in inside.values() if len(several) > 1),
    )


@functools.lru_cache(maxsize=32)
def _columns(names: tuple[str, ...], edges: tuple[tuple[str, str], ...]) -> list[list[str]]:
    """Return the layers. While a run goes on, its steps change, but not how they hang together."""
    return layers(names, [Edge(*each) for each in edges])


def _boxes(steps: Sequence[GraphStep], depth: Mapping[str, int], deep: int) -> dict[str, str]:
    """Return the box of each step: of its own, or with others of its layer, or of a few layers.
    Lines lead from one layer to a later one, so boxes never need each other.
    """
    span = -(-deep // (MOST_BOXES // 2))
    ways: tuple[Callable[[GraphStep], str], ...] = (
        lambda step: step.id,
        lambda step: f"{depth[step.id]} {step.status}" if step.status in OVER else step.id,
        lambda step: f"{depth[step.id]} {step.status}",
        lambda step: f"{depth[step.id] // span}",
    )
    found: dict[str, str] = {}
    for way in ways:
        found = {step.id: way(step) for step in steps}
        if len(set(found.values())) <= MOST_BOXES:
            break
    return found


def _node(name: str, several: Sequence[GraphStep]) -> Node:
    if len(several) == 1:
        step = several[0]
        word = "" if step.status == "step" else step.status
        note = ", ".join(filter(None, (word, step.note))) or step.task
        return Node(step.id, step.status, note=note, link=step.link)
    counted = Counter(step.status for step in several)
    worst = min(counted, key=WORST.index)
    said = ", ".join(f"{number} {status}" for status, number in counted.items())
    return Node(name, worst, note=said if worst != "step" else "", text=f"{len(several)} steps")


def run_gantt(
    run: RunView,
    job: Job,
    children: Sequence[Job],
    now: datetime,
    link: Callable[[StepView], str | None],
) -> tuple[Markup, int]:
    """Return what ran when, and how many steps have begun but are left out. A thin line is the time
    for which a step that could begin waited: for its run, for its lane, for a worker.
    """
    now = datetime.fromtimestamp(now.timestamp() // 5 * 5, now.tzinfo) + GRAIN
    ended = {step.id: step.ended_at for step in run.steps}
    jobs: dict[str, list[Job]] = defaultdict(list)
    for child in children:
        jobs[child.group or ""].append(child)
    begun = [(step, _due(step, job, ended)) for step in run.steps if step.started_at is not None]
    begun.sort(key=lambda each: each[1])
    rows = []
    for step, due in begun[-MOST_BARS:]:
        began = [each.started_at for each in jobs[step.id] if each.started_at is not None]
        waits = jobs[step.id] and not began
        start = None if waits else max(due, min(began, default=step.started_at or due))
        end = step.ended_at or job.completed_at or now
        said = f"{step.id}: {step.status}"
        if start is not None:
            said += f", waited {duration(start - due)}, ran {duration(max(end, start) - start)}"
        rows.append(
            GanttRow(step.id, step.status, start, max(end, start or due), said, due, link(step))
        )
    return gantt("What ran when", rows), max(0, len(begun) - MOST_BARS)


def _due(step: StepView, job: Job, ended: Mapping[str, datetime | None]) -> datetime:
    """Return when a step could have begun: when the last that it needs was over."""
    before = [at for needed in step.needs if (at := ended.get(needed)) is not None]
    return max(before, default=min(job.run_at, step.started_at or job.run_at))
