"""Checking a workflow before it is run. Every problem is found, each with its place."""

from __future__ import annotations

import graphlib
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from headrace.errors import InvalidInput, InvalidWorkflow
from headrace.model.limits.lane import Lane
from headrace.model.names import check_name
from headrace.model.policy import check_priority, check_timeout
from headrace.suggest import did_you_mean
from headrace.task import Task
from headrace.workflows.conditions import Condition
from headrace.workflows.model import MOST_STEPS, STEP_ID, Step, Workflow
from headrace.workflows.output_types import never_a_list, nowhere, returned, shown
from headrace.workflows.references import (
    REFERENCE,
    BadReference,
    Place,
    Reference,
    find_text,
    parse,
)

Tasks = Mapping[str, Task[..., Any]]


class Problem(msgspec.Struct, frozen=True):
    """What is wrong, and where in the workflow."""

    place: Place
    reason: str


def problems(workflow: Workflow, tasks: Tasks, *, types: bool = False) -> list[Problem]:
    """Everything that keeps a workflow from being run; empty if nothing does. With `types` also
    what will not work if tasks return what they say.
    """
    return list(_Check(workflow, tasks, types=types).all())


def checked(workflow: Workflow, tasks: Tasks) -> Workflow:
    """Check a workflow that was made in code, or that came over the network."""
    found = problems(workflow, tasks)
    if found:
        raise InvalidWorkflow([f"{_shown(workflow, each)}: {each.reason}" for each in found])
    return workflow


def _shown(workflow: Workflow, problem: Problem) -> str:
    place = ".".join(str(part) for part in problem.place)
    return f'workflow "{workflow.id}"' + (f" {place}" if place else "")


class _Check:
    def __init__(self, workflow: Workflow, tasks: Tasks, *, types: bool) -> None:
        self.workflow = workflow
        self.tasks = tasks
        self.types = types
        self.ids = [step.id for step in workflow.steps]

    def all(self) -> Iterator[Problem]:
        yield from _refused(("id",), check_name, "workflow", self.workflow.id)
        yield from _refused(("queue",), check_name, "queue", self.workflow.queue)
        yield from _refused(("priority",), check_priority, self.workflow.priority)
        yield from self._lane(("lane",), self.workflow.lane, set(self.workflow.params))
        if not 1 <= len(self.ids) <= MOST_STEPS:
            yield Problem(
                ("steps",), f"a workflow has 1 to {MOST_STEPS} steps, this one has {len(self.ids)}"
            )
        for number, step in enumerate(self.workflow.steps):
            for problem in self._step(number, step):
                yield Problem(("steps", number, *problem.place), problem.reason)
        yield from self._references({"output": self.workflow.output}, item=False)
        yield from self._cycle()

    def _step(self, number: int, step: Step) -> Iterator[Problem]:
        if not STEP_ID.fullmatch(step.id):
            yield Problem(
                ("id",),
                f'step id {step.id!r} is not valid; use 1 to 64 letters, digits, "_" and "-"',
            )
        elif step.id in self.ids[:number]:
            yield Problem(("id",), f'two steps are called "{step.id}"; give each its own id')
        for index, needed in enumerate(step.needs):
            if needed == step.id:
                yield Problem(("needs", index), f'step "{step.id}" needs itself')
            elif needed not in self.ids:
                yield Problem(
                    ("needs", index),
                    f'step "{step.id}" needs "{needed}", which is no step; '
                    f"{did_you_mean(needed, self.ids)}",
                )
        yield from self._references(
            {"params": step.params, "when": step.when}, item=step.each is not None, own=step.id
        )
        yield from self._references({"each": step.each}, item=False, own=step.id)
        yield from self._condition(step)
        yield from self._options(step)
        yield from self._task(step)
        yield from self._each(step)

    def _each(self, step: Step) -> Iterator[Problem]:
        """What a step is run for each of has to be a list."""
        if step.each is None or isinstance(step.each, list | tuple):
            return
        whole = REFERENCE.fullmatch(step.each) if isinstance(step.each, str) else None
        if whole is None:
            yield Problem(
                ("each",),
                f'step "{step.id}": each is {step.each!r}; give a list, or refer to one: '
                "${steps.ID.output}",
            )
        elif (found := self._no_list(whole[1])) is not None:
            yield Problem(("each",), f'step "{step.id}": each must be a list, and {found}')

    def _no_list(self, text: str) -> str | None:
        """Why a reference stands for something else than a list, as far as it is known."""
        try:
            reference = parse(text)
        except BadReference:
            return None  # reported with the references
        match reference:
            case Reference(root="params", path=(str(name),)) if name in self.workflow.params:
                kind = self.workflow.params[name].type
                if kind not in ("array", "any"):
                    return f"{reference} is of type {kind}"
            case Reference(root="steps", path=(_, "status", *_)) | Reference(root="run"):
                return f"{reference} is text"
            case Reference(root="steps", path=(str(name), "output", *path)) if self.types:
                kind = self._output(name)
                if never_a_list(kind, path):
                    return f'{reference} is none: step "{name}" returns {shown(kind)}'
        return None

    def _output(self, step_id: str) -> Any:
        """The type of a step's output, as far as it is known."""
        step = self.workflow.step(step_id)
        if step is None or step.task not in self.tasks:
            return Any
        kind = returned(self.tasks[step.task])
        return kind if step.each is None else list[kind]  # type: ignore[valid-type]

    def _condition(self, step: Step) -> Iterator[Problem]:
        if isinstance(step.when, str):
            try:
                Condition(step.when)
            except BadReference:
                return  # reported with the references
            except InvalidInput as error:
                yield Problem(("when",), f'step "{step.id}": {error}')

    def _options(self, step: Step) -> Iterator[Problem]:
        if step.queue is not None:
            yield from _refused(("queue",), check_name, "queue", step.queue)
        if step.priority is not None:
            yield from _refused(("priority",), check_priority, step.priority)
        if step.timeout is not None:
            yield from _refused(("timeout",), check_timeout, step.timeout)
        if step.retries is not None and not 0 <= step.retries <= 10_000:
            yield Problem(("retries",), f"retries must be between 0 and 10000, got {step.retries}")
        yield from self._lane(("lane",), step.lane, set(step.params))

    def _lane(self, place: Place, template: str | None, names: set[str]) -> Iterator[Problem]:
        if template is None:
            return
        try:
            unknown = sorted(Lane(template).fields() - names)
        except InvalidInput as error:
            yield Problem(place, str(error))
            return
        if unknown:
            given = ", ".join(sorted(names)) or "there are none"
            yield Problem(
                place, f"lane {template!r} reads {unknown[0]!r}, which is not in params ({given})"
            )

    def _task(self, step: Step) -> Iterator[Problem]:
        task = self.tasks.get(step.task)
        if task is None:
            yield Problem(
                ("task",),
                f'step "{step.id}": unknown task "{step.task}"; '
                f"{did_you_mean(step.task, list(self.tasks))}",
            )
            return
        signature = task.signature
        for name in step.params:
            if name not in signature.names:
                yield Problem(
                    ("params", name),
                    f'step "{step.id}": task "{task.name}" takes no {name!r}; '
                    f"{did_you_mean(name, signature.names)}",
                )
        for name in signature.required:
            if name not in step.params:
                yield Problem(
                    ("params",), f'step "{step.id}": task "{task.name}" needs {name!r} in params'
                )
        for name, value in step.params.items():
            if name in signature.names and not _refers(value):
                wrong = signature.fault(name, value)
                if wrong is not None:
                    yield Problem(("params", name), f'step "{step.id}": {name}: {wrong}')

    def _references(
        self, values: Mapping[str, Any], *, item: bool, own: str | None = None
    ) -> Iterator[Problem]:
        for name, value in values.items():
            for place, text in find_text(value, (name,)):
                try:
                    reason = self._missing(parse(text), item=item, own=own)
                except BadReference as error:
                    reason = str(error)
                if reason is not None:
                    yield Problem(place, reason)

    def _missing(self, reference: Reference, *, item: bool, own: str | None) -> str | None:
        match reference.root:
            case "steps":
                return self._missing_output(reference, own)
            case "params" if self.workflow.params:
                name = str(reference.path[0])
                if name not in self.workflow.params:
                    known = did_you_mean(name, list(self.workflow.params))
                    return f'{reference}: the workflow has no parameter "{name}"; {known}'
            case "item" | "index" if not item:
                return f"{reference} stands for nothing here; it belongs to a step with each"
            case "run" if reference.path != ("id",):
                return f"{reference}: a run has nothing but an id: ${{run.id}}"
        return None

    def _missing_output(self, reference: Reference, own: str | None) -> str | None:
        name, part, *path = reference.path
        reason = None
        if name == own:
            reason = f'{reference}: step "{own}" cannot refer to itself'
        elif name not in self.ids:
            known = did_you_mean(str(name), self.ids)
            reason = f'{reference}: there is no step "{name}"; {known}'
        elif part == "status" and path:
            reason = f"{reference} leads nowhere: a status is text"
        elif part == "output" and self.types:
            found = nowhere(self._output(str(name)), path)
            reason = found and f'{reference} leads nowhere: what step "{name}" returns, {found}'
        return reason

    def _cycle(self) -> Iterator[Problem]:
        graph = {step.id: _before(step) for step in self.workflow.steps}
        try:
            graphlib.TopologicalSorter(graph).prepare()
        except graphlib.CycleError as error:
            circle: list[str] = error.args[1]
            yield Problem(
                ("steps", self.ids.index(circle[0])),
                f"these steps wait for each other: {' → '.join(reversed(circle))}",
            )


def _before(step: Step) -> list[str]:
    """The steps that have to be over first, as far as it can be read."""
    found = list(step.needs)
    for _, text in find_text([step.params, step.when, step.each]):
        try:
            reference = parse(text)
        except BadReference:
            continue  # reported with the references
        if reference.root == "steps":
            found.append(str(reference.path[0]))
    return [needed for needed in found if needed != step.id]


def _refers(value: Any) -> bool:
    return any(True for _ in find_text(value))


def _named(kind: Any) -> str:
    return kind.__name__ if isinstance(kind, type) else str(kind).replace("typing.", "")


def _refused(place: Place, check: Any, *arguments: Any) -> Iterator[Problem]:
    try:
        check(*arguments)
    except InvalidInput as error:
        yield Problem(place, str(error))
