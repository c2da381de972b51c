"""Workflow files: what is read, and that what is wrong is told with its line."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.errors import InvalidWorkflow
from headrace.task import Task
from headrace.workflows.load import load_file
from tests.workflows.conftest import Write

Tasks = dict[str, Task[..., Any]]

YAML = """\
id: prices
version: 3
queue: scans
lane: "platform:{platform}"
params:
  platform: {type: string}
  pages: {type: integer, default: 2}
steps:
  - id: fetch
    task: fetch
    params:
      url: https://${params.platform}.example/
      pages: ${params.pages}
    retries: 2
    timeout: 30
  - id: parse
    task: parse
    each: ${steps.fetch.output.pages}
    params: {page: "${item}"}
  - id: store
    task: store
    needs: [parse]
    when: ${steps.fetch.output.count} > 0
    params: {rows: "${steps.parse.output}"}
"""

JSON = """\
{
\t"id": "prices", "version": 3, "queue": "scans", "lane": "platform:{platform}",
\t"params": {"platform": {"type": "string"}, "pages": {"type": "integer", "default": 2}},
\t"steps": [
\t\t{"id": "fetch", "task": "fetch", "retries": 2, "timeout": 30, "params": {
\t\t\t"url": "https://${params.platform}.example/", "pages": "${params.pages}"}},
\t\t{"id": "parse", "task": "parse", "each": "${steps.fetch.output.pages}",
\t\t "params": {"page": "${item}"}},
\t\t{"id": "store", "task": "store", "needs": ["parse"],
\t\t "when": "${steps.fetch.output.count} > 0", "params": {"rows": "${steps.parse.output}"}}
\t]
}
"""


def test_yaml_and_json_say_the_same(write: Write, tasks: Tasks) -> None:
    workflow = load_file(write("prices.yaml", YAML), tasks)
    assert workflow == load_file(write("prices.json", JSON), tasks)
    assert (workflow.id, workflow.version, workflow.queue) == ("prices", 3, "scans")
    assert [step.depends_on for step in workflow.steps] == [(), ("fetch",), ("parse", "fetch")]
    assert [step.id for step in workflow.last()] == ["store"]
    assert workflow.after("parse") == {"parse", "store"}


def wrong(write: Write, tasks: Tasks, content: str, name: str = "w.yaml") -> list[str]:
    path = write(name, content)
    with pytest.raises(InvalidWorkflow) as caught:
        load_file(path, tasks)
    return [problem.removeprefix(f"{path} ") for problem in caught.value.problems]


def test_every_problem_is_told_with_its_line(write: Write, tasks: Tasks) -> None:
    content = """\
id: w
params: {url: {type: string}}
steps:
  - id: fetch
    task: fetch
    params: {url: "${params.ulr}"}
  - id: parse
    task: parze
    needs: [fetch, store]
  - id: store
    task: store
    params:
      rows: "${steps.parse.output}"
      table: 7
"""
    assert wrong(write, tasks, content) == [
        'line 6: ${params.ulr}: the workflow has no parameter "ulr"; did you mean "url"?',
        "line 7: these steps wait for each other: parse → store → parse",
        'line 8: step "parse": unknown task "parze"; did you mean "parse"?',
        'line 14: step "store": table: Expected `str`, got `int` (7)',
    ]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("    needs: [nothing]", 'line 5: step "a" needs "nothing", which is no step; known: a'),
        ("    needs: [a]", 'line 5: step "a" needs itself'),
        ("    need: [a]", 'line 5: there is no field "need"'),
        ("    params: {speed: 1}", 'line 5: step "a": task "nothing" takes no \'speed\'; '),
        ("    params: [1]", "line 5: Expected `object`, got `array`"),
        ("    timeout: -1", "line 5: timeout must be more than 0"),
        ("    timeout: soon", "line 5: Expected `float | null`, got `str`"),
        ("    queue: true", "line 5: Expected `str | null`, got `bool`"),
        ("    retries: 1.5", "line 5: Expected `int | null`, got `float`"),
        ("    priority: 5000", "line 5: priority must be a whole number"),
        ("    queue: 'a b'", "line 5: queue name 'a b' is not valid"),
        ("    lane: 'x:{who}'", "line 5: lane 'x:{who}' reads 'who', which is not in params"),
        ("    when: ${steps.b.output}", 'line 5: ${steps.b.output}: there is no step "b"'),
        ("    when: ${steps.a}", "line 5: ${steps.a} must name a step and what of it"),
        ("    when: ${item} > 1", "line 5: ${item} stands for nothing here"),
        ("    when: ${elsewhere}", "line 5: ${elsewhere} begins with none of params, steps"),
        ("    when: ${params.x", "line 5: step \"a\": the condition '${params.x' cannot be read"),
        ("    when: f(1)", "line 5: step \"a\": the condition 'f(1)' contains 'f(1)'"),
        ("    when: (1).real", "line 5: step \"a\": the condition '(1).real' contains"),
        ("    when: ${run.name}", "line 5: ${run.name}: a run has nothing but an id"),
        ("    each: 7", 'line 5: step "a": each is 7; give a list'),
        ("    on_failure: explode", "line 5: Invalid enum value 'explode'"),
        ("  - id: a\n    task: nothing", 'line 5: two steps are called "a"'),
        ("  - id: 'a b'\n    task: nothing", "line 5: step id 'a b' is not valid"),
        ("  - task: nothing", "line 5: Object missing required field `id`"),
    ],
)
def test_what_is_wrong_in_a_step(write: Write, tasks: Tasks, line: str, reason: str) -> None:
    problems = wrong(write, tasks, f"id: w\nsteps:\n  - id: a\n    task: nothing\n{line}\n")
    assert problems[0].startswith(reason)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("w.json", '{"id": "w",\n "steps": [}', "line 2 is not valid JSON: Expecting value"),
        ("w.json", '{"id": NaN, "steps": []}', "is not valid JSON: NaN is not a JSON value"),
        ("w.json", "", "line 1 is not valid JSON"),
        ("w.yaml", "", "is empty; a workflow has an id and steps"),
        ("w.yaml", "# nothing\n", "is empty"),
        ("w.yaml", "---\n", "is empty"),
        ("w.yaml", "id: w\nsteps: [", "line 2 is not valid YAML"),
        ("w.yaml", "id: w\nid: v\nsteps: []", 'line 2: the file has "id" twice, first in line 1'),
        ("w.yaml", "7: w", "line 1: the name 7 is not text; quote it"),
        ("w.yaml", "- a", "line 1: Expected `object`, got `array`"),
        ("w.yaml", "id: w\nsteps: []", "line 2: a workflow has 1 to 1000 steps"),
        ("w.yaml", "id: w", "line 1: Object missing required field `steps`"),
        ("w.yaml", "id: w\nsteps: !!python/object:os.system {}", "line 2: steps cannot be"),
    ],
)
def test_what_is_wrong_with_a_file(
    write: Write, tasks: Tasks, name: str, content: str, reason: str
) -> None:
    [problem] = wrong(write, tasks, content, name)
    assert problem.startswith(reason)


def test_a_file_that_stands_for_an_endless_one_is_refused(write: Write, tasks: Tasks) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    [problem] = wrong(write, tasks, "\n".join(lines))
    assert "stands for more than 100,000 values" in problem


def test_a_file_that_is_not_text_or_not_there(write: Write, tasks: Tasks) -> None:
    path = write("w.yaml", "")
    path.write_bytes(b"id: w\nname: \xff\n")
    with pytest.raises(InvalidWorkflow, match="line 2 is not UTF-8 text"):
        load_file(path, tasks)
    path.unlink()
    with pytest.raises(InvalidWorkflow, match="there is no such file"):
        load_file(path, tasks)
