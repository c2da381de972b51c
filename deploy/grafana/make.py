"""Makes the dashboards of Grafana, and checks their queries against what a process really shows.

    python deploy/grafana/make.py                                   writes dashboards/*.json
    python deploy/grafana/make.py http://127.0.0.1:9464/metrics …   checks, then writes

panels.yaml says what they show. A query that names a metric or a label that none of the pages has
is an error. With an API key in HEADRACE_API_KEY, the page of the API can be read as well.
"""

from __future__ import annotations

import json
import os
import re
import sys
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ruamel.yaml import YAML

HERE = Path(__file__).parent
FOLDER = HERE / "dashboards"
DATASOURCE = {"type": "prometheus", "uid": "prometheus"}
HEIGHTS = {"stat": 4, "timeseries": 8}
WIDTH = 24
# What Prometheus adds to every series.
ADDED = {"job", "instance"}
_METRIC = re.compile(r"(headrace_\w+|(?<![\w:])up(?=\{))(?:\{(.*?)\})?")
_MATCHER = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")
_GROUPING = re.compile(r"\b(?:by|without|on)\s*\(([^)]*)\)")
_SERIES = re.compile(r"^([a-z_]+)(?:\{(.*)\})? \S+$", re.MULTILINE)
_TYPE = re.compile(r"^# TYPE (\S+) (\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="(?:[^"\\]|\\.)*"')


class Panel(NamedTuple):
    """One panel. `optional` ones have no data where nothing of the kind happens or is scraped."""

    title: str
    expr: str
    legend: str
    unit: str = "short"
    kind: str = "timeseries"
    words: str = ""
    optional: bool = False
    width: int = 12


class Row(NamedTuple):
    """Panels below a heading."""

    title: str
    panels: tuple[Panel, ...]


def declared() -> dict[str, tuple[str, bool, tuple[Row, ...]]]:
    """Return title, whether queues can be chosen, and rows of each dashboard in the file."""
    content = YAML(typ="safe").load(HERE / "panels.yaml")

    def panel(*, expr: str, **others: Any) -> Panel:
        for name, text in content["words"].items():
            expr = expr.replace(f"<{name}>", text)
        return Panel(expr=expr, **others)

    def row(title: str, panels: list[dict[str, Any]]) -> Row:
        return Row(title, tuple(panel(**each) for each in panels))

    return {
        name: (each["title"], each.get("queues", False), tuple(row(**one) for one in each["rows"]))
        for name, each in content["dashboards"].items()
    }


def all_panels() -> list[Panel]:
    """Return the panels of all dashboards."""
    return [panel for _, _, rows in declared().values() for row in rows for panel in row.panels]


QUEUE = {
    "name": "queue",
    "label": "Queue",
    "type": "query",
    "datasource": DATASOURCE,
    "query": {"query": "label_values(headrace_queue_jobs, queue)", "refId": "queue"},
    "includeAll": True,
    "allValue": ".*",
    "multi": True,
    "refresh": 2,
    "sort": 1,
    "current": {"text": "All", "value": "$__all"},
}


def dashboards() -> dict[str, dict[str, Any]]:
    """Return the dashboards by the names of their files."""
    return {
        f"{name}.json": dashboard(f"headrace-{name}", title, rows, [QUEUE] if queues else [])
        for name, (title, queues, rows) in declared().items()
    }


def dashboard(
    uid: str, title: str, rows: Iterable[Row], variables: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return one dashboard."""
    return {
        "uid": uid,
        "title": title,
        "tags": ["headrace"],
        "schemaVersion": 39,
        "version": 1,
        "editable": False,
        "refresh": "15s",
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "browser",
        "templating": {"list": variables},
        "panels": list(_laid_out(rows)),
    }


def _laid_out(rows: Iterable[Row]) -> Iterator[dict[str, Any]]:
    number = top = 0
    for row in rows:
        number += 1
        heading = {"h": 1, "w": WIDTH, "x": 0, "y": top}
        yield {"id": number, "type": "row", "title": row.title, "gridPos": heading, "panels": []}
        top += 1
        left = height = 0
        for panel in row.panels:
            if left + panel.width > WIDTH:
                left, top = 0, top + height
            height = HEIGHTS[panel.kind]
            number += 1
            place = {"h": height, "w": panel.width, "x": left, "y": top}
            yield _panel(panel, number, place)
            left += panel.width
        top += height


def _panel(panel: Panel, number: int, place: dict[str, int]) -> dict[str, Any]:
    target = {
        "refId": "A",
        "datasource": DATASOURCE,
        "expr": panel.expr,
        "legendFormat": panel.legend,
        "instant": panel.kind == "stat",
        "range": panel.kind != "stat",
    }
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.words,
        "datasource": DATASOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [target],
    }


def text_of(made: dict[str, Any]) -> str:
    """Return a dashboard as it is stored."""
    return json.dumps(made, indent=2, ensure_ascii=False) + "\n"


def labels_of(pages: Iterable[str]) -> dict[str, set[str]]:
    """Return the metrics of pages of `/metrics` with their labels. One without any series now has
    none.
    """
    found: dict[str, set[str]] = {}
    for page in pages:
        for name, kind in _TYPE.findall(page):
            for end in ("_bucket", "_count", "_sum") if kind == "histogram" else ("",):
                found.setdefault(name + end, set())
        for name, labels in _SERIES.findall(page):
            found.setdefault(name, set()).update(_LABEL.findall(labels))
    return found


def unknown_names(expr: str, known: Mapping[str, set[str]]) -> list[str]:
    """Return what is wrong in a query: metrics and labels that do not exist."""
    wrong = []
    everything = set(ADDED)
    for name, matchers in _METRIC.findall(expr):
        if name == "up":
            continue
        if name not in known:
            wrong.append(f"there is no metric {name}")
            continue
        if not known[name]:
            # Nothing of the kind has happened, so its labels are not to be seen.
            everything.update(_MATCHER.findall(matchers), _grouped(expr))
            continue
        everything |= known[name]
        missing = set(_MATCHER.findall(matchers)) - known[name] - ADDED
        wrong += [f"{name} has no label {label}" for label in sorted(missing)]
    wrong += [f"no metric has the label {label}" for label in sorted(_grouped(expr) - everything)]
    return wrong


def _grouped(expr: str) -> set[str]:
    names = (name.strip() for group in _GROUPING.findall(expr) for name in group.split(","))
    return {name for name in names if name}


def read(url: str) -> str:
    """Return a page."""
    request = urllib.request.Request(url)
    if key := os.environ.get("HEADRACE_API_KEY"):
        request.add_header("Authorization", f"Bearer {key}")
    with urllib.request.urlopen(request, timeout=10) as page:
        return str(page.read().decode())


def main(urls: list[str]) -> int:
    """Check the queries against these pages, if any, and write the dashboards."""
    if urls:
        known = labels_of(map(read, urls))
        wrong = [
            f"{panel.title}: {each}"
            for panel in all_panels()
            for each in unknown_names(panel.expr, known)
        ]
        if wrong:
            print(*wrong, sep="\n", file=sys.stderr)
            return 1
    for name, made in dashboards().items():
        (FOLDER / name).write_text(text_of(made), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
