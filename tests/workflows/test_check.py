"""`workflows check`: every problem of every file, also what can be known before a run."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, TypedDict

import msgspec
import pytest

from headrace import App
from headrace.errors import InvalidInput, InvalidWorkflow
from headrace.task import Task
from headrace.workflows.load import check_files, load_file
from headrace.workflows.model import Step, Workflow
from headrace.workflows.versions import version_order
from tests.workflows.conftest import Write

Tasks = dict[str, Task[..., Any]]


class Offer(msgspec.Struct):
    price: float
    tags: list[str] = []


@dataclasses.dataclass
class Page:
    offers: list[Offer]
    next: str | None = None


class Row(TypedDict):
    id: int


@pytest.fixture
def typed() -> Tasks:
    app = App("redis://127.0.0.1:1/0")

    @app.task
    async def page() -> Page | None:
        return None

    @app.task
    async def rows() -> list[Row]:
        return []

    @app.task
    async def mapping() -> dict[str, Any]:
        return {}

    @app.task
    async def number() -> int:
        return 1

    @app.task
    async def anything():  # type: ignore[no-untyped-def]
        return 1

    @app.task
    async def take(value: Any = None) -> None: ...

    return app.tasks


def check(write: Write, tasks: Tasks, content: str) -> list[str]:
    path = write("w.yaml", content)
    [found] = check_files([str(path)], tasks)
    return [problem.removeprefix(f"{path} ") for problem in found.problems]


def test_all_lines_with_a_problem_are_named(write: Write, tasks: Tasks) -> None:
    content = """\
id: w
queue: 7
colour: red
version: 1.10
params:
  url: {type: text}
  page: {type: integer, defalt: 1}
steps:
  - id: fetch
    task: fetch
    params: {url: "${params.url}", pages: "${elsewhere} ${params.ulr}"}
    retries: many
    timeout: soon
  - id: parse
    taks: parse
    when: ${steps.fetch} and ${steps.fetsh.output}
  - just text
  - id: store
    task: store
    params: {rows: 3, table: "${index.x} ${steps.fetch.status.x}"}
    each: {a: 1}
    needs: parse
  - id: last
    task: nothing
    on_failure: explode
    needs: [store, nowhere]
output: "${steps.nobody.output} ${params.}"
"""
    found = check(write, tasks, content)
    lines = [int(problem.split()[1].rstrip(":")) for problem in found]
    assert lines == sorted(lines)
    assert set(lines) == {2, 3, 4, 6, 7, 11, 12, 13, 14, 15, 16, 17, 20, 21, 22, 25, 26, 27}
    assert lines.count(11) == lines.count(16) == lines.count(27) == 2
    text = "\n".join(found)
    for reason in (
        'there is no field "colour"; known: ',
        '; write it in quotes: "1.10" is another version than "1.1"',
        '"ulr"; did you mean "url"?',
        'there is no field "taks"; did you mean "task"?',
        "Object missing required field `task`",
        'there is no step "fetsh"; did you mean "fetch"?',
        "each is {'a': 1}; give a list",
        "${steps.fetch.status.x} leads nowhere: a status is text",
    ):
        assert reason in text


@pytest.mark.parametrize(
    ("each", "reason"),
    [
        ("${params.object}", "${params.object} is of type object"),
        ("${params.text}", "${params.text} is of type string"),
        ("${steps.first.status}", "${steps.first.status} is text"),
        ("${steps.first.output}", 'is none: step "first" returns dict[str, Any]'),
        ("${params.list}${params.list}", "give a list, or refer to one"),
        ("${params.list}", None),
        ("${params.any}", None),
        ("${params.object.items}", None),
        ("${steps.first.output.offers}", None),
        ("${steps.many.output}", None),
        ("${steps.any.output}", None),
        ("${steps.page.output.offers}", None),
        ("${steps.page.output.next}", "is none"),
        ("${steps.number.output}", "is none"),
    ],
)
def test_each_over_what_is_no_list(
    write: Write, typed: Tasks, each: str, reason: str | None
) -> None:
    content = f"""\
id: w
params: {{object: {{type: object}}, text: {{type: string}}, list: {{type: array}}, any: {{}}}}
steps:
  - {{id: first, task: mapping}}
  - {{id: many, task: number, each: [1, 2]}}
  - {{id: any, task: anything}}
  - {{id: page, task: page}}
  - {{id: number, task: number}}
  - id: last
    task: take
    each: "{each}"
"""
    found = check(write, typed, content)
    if reason is None:
        assert found == []
    else:
        assert len(found) == 1
        assert found[0].startswith('line 11: step "last": each ')
        assert reason in found[0]


@pytest.mark.parametrize(
    ("task", "way", "reason"),
    [
        ("number", ".x", "int has no 'x'"),
        ("rows", ".id", "list[tests.workflows.test_check.Row] has no 'id'"),
        ("rows", "[0].id", None),
        ("rows", "[0].name", "Row has no 'name'"),
        ("rows", "[0].id.more", "int has no 'more'"),
        ("page", ".offers[3].price", None),
        ("page", ".offers[3].cost", "Offer has no 'cost'"),
        ("page", ".offers.price", "list[tests.workflows.test_check.Offer] has no 'price'"),
        ("page", ".next.url", "str | None has no 'url'"),
        ("mapping", ".any.thing[7]", None),
        ("anything", ".any.thing[7]", None),
        ("take", ".x", None),
    ],
)
def test_an_output_that_leads_nowhere_is_found_before_the_run(
    write: Write, typed: Tasks, task: str, way: str, reason: str | None
) -> None:
    content = f"id: w\nsteps:\n  - {{id: a, task: {task}}}\noutput: '${{steps.a.output{way}}}'\n"
    found = check(write, typed, content)
    reasons = [] if reason is None else [reason]
    assert [each.partition("returns, ")[2] for each in found] == reasons
    # Tasks may say something wrong about themselves: that keeps nobody from running it.
    assert load_file(write("w.yaml", content), typed).id == "w"


def test_files_of_the_same_version_are_told(write: Write, tasks: Tasks) -> None:
    one = write("one.yaml", "id: w\nversion: 1\nsteps:\n  - {id: a, task: nothing}\n")
    two = write("two.yaml", "id: w\nversion: '1.0'\nsteps:\n  - {id: b, task: nothing}\n")
    three = write("three.yaml", "id: w\nversion: 2\nsteps:\n  - {id: b, task: nothing}\n")
    found = check_files([str(one), str(two), str(three)], tasks)
    assert [each.problems for each in found] == [
        [],
        [
            f'{two}: workflow "w" version 1.0 is also in {one}, as version 1; '
            "give the newer one a higher version"
        ],
        [],
    ]


# -- versions ----------------------------------------------------------------------------------

ORDERED: list[list[int | str]] = [
    [1, 2, 9, 10, 100],
    ["1", "2", "9", "10"],
    ["1.9", "1.10", "2"],
    [1, "1.0.1", "1.2", 2],
    ["2.0-alpha", "2.0-beta.2", "2.0-beta.10", "2.0-rc1", "2.0", "2.0.1"],
    ["v1", "v2", "v10"],
    ["2025-12-31", "2026-02-01", "2026-10-01"],
    ["a", "b", 1],
]


@pytest.mark.parametrize("versions", ORDERED, ids=str)
def test_the_newest_is_the_one_with_the_highest_number(
    versions: list[int | str], typed: Tasks
) -> None:
    assert [version_order(each) for each in versions] == sorted(map(version_order, versions))
    for order in (versions, versions[::-1]):
        app = App("redis://127.0.0.1:1/0", workflows="none")
        app.tasks.update(typed)
        for version in order:
            steps = (Step(id="a", task="take", params={"value": str(version)}),)
            app.workflows.add(Workflow(id="w", version=version, steps=steps))
        assert app.workflows.find("w").version == versions[-1]
        assert [each.version for each in app.workflows.all()] == [versions[-1]]


def test_versions_that_are_the_same_number_are_refused(typed: Tasks) -> None:
    app = App("redis://127.0.0.1:1/0", workflows="none")
    app.tasks.update(typed)
    add: Callable[..., Any] = lambda version: app.workflows.add(  # noqa: E731
        Workflow(id="w", version=version, steps=(Step(id="a", task="take"),))
    )
    add(1)
    add(1)
    with pytest.raises(
        InvalidInput, match=r"version 1\.0 is there twice, also as 1, and they differ"
    ):
        add("1.0")
    with pytest.raises(InvalidWorkflow):
        app.workflows.add(Workflow(id="w", version=3, steps=(Step(id="a", task="nobody"),)))
