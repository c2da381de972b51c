"""Workflows in Python: the same steps as in a file, with names instead of `${…}`.

prices = app.workflow("prices", queue="scans")
fetch = prices.step("fetch", fetch_page, url=prices.params.url)
parse = prices.step("parse", parse_offer, offer=prices.item, each=fetch.output.offers)
prices.step("store", store, rows=parse.output, when=f"{fetch.output.count} > 0")
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypedDict, Unpack

import msgspec

from headrace.errors import InvalidSetting
from headrace.task import Task
from headrace.workflows.model import OnFailure, Param, Step, Workflow


class Value:
    """Something that is known only when the workflow runs. Attributes and items lead into it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def __getattr__(self, name: str) -> Value:
        if name.startswith("__"):
            raise AttributeError(name)
        return self[name]

    def __getitem__(self, name: str | int) -> Value:
        if isinstance(name, int):
            return Value(f"{self._text}[{name}]")
        plain = name.replace("-", "_").isidentifier()
        return Value(f"{self._text}.{name}" if plain else f'{self._text}["{name}"]')

    def __str__(self) -> str:
        return "${" + self._text + "}"

    def __bool__(self) -> bool:
        raise InvalidSetting(
            f"{self} has no value yet; to decide on it, give the step a condition: "
            f'when=f"{{value}} > 0"'
        )

    def __iter__(self) -> Any:
        raise InvalidSetting(f"{self} has no value yet; to go through it, give the step each=…")


class StepHandle:
    """A step, for those that come after it."""

    def __init__(self, step_id: str) -> None:
        self.id = step_id
        self.output = Value(f"steps.{step_id}.output")
        self.status = Value(f"steps.{step_id}.status")


class StepOptions(TypedDict, total=False):
    """What can be said of a step besides its task and its parameters."""

    needs: Iterable[StepHandle | str]
    when: str | bool | None
    each: Any
    on_failure: OnFailure
    queue: str | None
    lane: str | None
    priority: int | None
    retries: int | None
    timeout: float | None


class WorkflowBuilder:
    """Collects the steps of a workflow."""

    def __init__(self, **fields: Any) -> None:
        self._fields = fields
        self._steps: list[Step] = []
        self.params = Value("params")
        self.item = Value("item")
        self.index = Value("index")
        self.run_id = Value("run.id")

    def step(
        self,
        step_id: str,
        task: Task[..., Any] | str,
        params: Mapping[str, Any] | None = None,
        /,
        **options: Unpack[StepOptions],
    ) -> StepHandle:
        """Add a step that runs a task with these parameters."""
        needs = tuple(
            each.id if isinstance(each, StepHandle) else each for each in options.pop("needs", ())
        )
        self._steps.append(
            Step(
                id=step_id,
                task=task if isinstance(task, str) else task.name,
                params=plain(dict(params or {})),
                needs=needs,
                **plain(options),
            )
        )
        return StepHandle(step_id)

    def build(self, *, output: Any = None) -> Workflow:
        """The workflow as it is now."""
        return Workflow(**self._fields, steps=tuple(self._steps), output=plain(output))


def params_of(declared: Mapping[str, Any]) -> dict[str, Param]:
    """Parameters as they are declared in code: `{"url": str, "pages": 3}`, or as in a file."""
    found = {}
    for name, what in declared.items():
        match what:
            case Param():
                found[name] = what
            case dict():
                found[name] = msgspec.convert(what, Param)
            case type():
                found[name] = Param(type=_TYPES.get(what, "any"))
            case _:
                found[name] = Param(type=_TYPES.get(type(what), "any"), default=what)
    return found


def plain(value: Any) -> Any:
    """The value with names turned into references."""
    match value:
        case Value():
            return str(value)
        case Mapping():
            return {key: plain(each) for key, each in value.items()}
        case list() | tuple():
            return [plain(each) for each in value]
        case _:
            return value


_TYPES: dict[type, Any] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    dict: "object",
    list: "array",
}
