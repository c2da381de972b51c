"""What a workflow is: steps that run tasks, and how they hang together. No I/O."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from headrace.workflows.references import Reference, find

STEP_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}")
MOST_STEPS = 1_000

OnFailure = Literal["fail", "continue"]
ParamType = Literal["string", "integer", "number", "boolean", "object", "array", "any"]


class Param(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A value that a workflow is run with. Without a default it has to be given."""

    type: ParamType = "any"
    default: Any = msgspec.UNSET
    description: str = ""


class Step(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """One task of a workflow.

    `params` may refer to what came before: `${params.url}`, `${steps.fetch.output.price}`. `needs`
    names further steps that have to be over first. `when` is a condition: if it is false the step
    is skipped. `each` is a list, or refers to one: the step is run for each `${item}` of it, and
    its output is the list of outputs. With `on_failure: continue` the others go on when the step
    fails: its output is null, or has null in place of the items that failed.
    """

    id: str
    task: str
    params: dict[str, Any] = {}
    needs: tuple[str, ...] = ()
    when: str | bool | None = None
    each: Any = None
    on_failure: OnFailure = "fail"
    queue: str | None = None
    lane: str | None = None
    priority: int | None = None
    retries: int | None = None
    timeout: float | None = None

    def references(self) -> Iterator[tuple[tuple[str | int, ...], Reference]]:
        """Everything that the step refers to, with its place within the step."""
        yield from find(self.params, ("params",))
        yield from find(self.when, ("when",))
        yield from find(self.each, ("each",))

    @property
    def depends_on(self) -> tuple[str, ...]:
        """The steps that have to be over first: those it needs, and those it refers to."""
        referred = (
            reference.path[0] for _, reference in self.references() if reference.root == "steps"
        )
        return tuple(dict.fromkeys([*self.needs, *(str(each) for each in referred)]))


class Workflow(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """Steps under a name and a version. A run keeps the version that it began with.

    `output` is what a run results in; without it, that is the output of every step that no other
    depends on, by its id.
    """

    id: str
    version: int | str = 1
    description: str = ""
    queue: str = "default"
    lane: str | None = None
    priority: int = 0
    params: dict[str, Param] = {}
    steps: tuple[Step, ...]
    output: Any = None

    def step(self, step_id: str) -> Step | None:
        """The step of this id."""
        return next((step for step in self.steps if step.id == step_id), None)

    def last(self) -> list[Step]:
        """The steps that no other depends on."""
        needed = {each for step in self.steps for each in step.depends_on}
        return [step for step in self.steps if step.id not in needed]

    def after(self, step_id: str) -> set[str]:
        """A step and all that depend on it, however far away."""
        found = {step_id}
        grown = True
        while grown:
            more = {step.id for step in self.steps if found.intersection(step.depends_on)} - found
            found |= more
            grown = bool(more)
        return found
