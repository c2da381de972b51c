"""From a file to a checked workflow."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from headrace.errors import InvalidInput, InvalidWorkflow, MissingDriver
from headrace.suggest import did_you_mean
from headrace.workflows.check import Problem, Tasks, problems
from headrace.workflows.model import Param, Step, Workflow
from headrace.workflows.references import Place
from headrace.workflows.versions import version_order

try:
    from headrace.config_files import BadDocument, Document, read_document
except ModuleNotFoundError as error:
    raise MissingDriver(
        f'workflow files need {error.name}; install it: pip install "headrace[workflows]"'
    ) from error

ENDINGS = (".json", ".yaml", ".yml")

T = TypeVar("T")

_SEGMENT = re.compile(r"\.([^.\[\]`]+)|\[(\d+)\]|\[\.\.\.\]")


def files(folder: Path) -> list[Path]:
    """The workflow files of a folder, by name."""
    return sorted(path for path in folder.iterdir() if path.suffix in ENDINGS and path.is_file())


class CheckedFile(msgspec.Struct, frozen=True):
    """What was found in a file: a workflow, or problems."""

    file: str
    workflow_id: str | None
    version: int | str | None
    problems: list[str]


def check_files(names: Sequence[str], tasks: Tasks) -> list[CheckedFile]:
    """Check files, and all workflow files of folders: each by itself, and that no two of them are
    the same version of a workflow.
    """
    found: list[Path] = []
    for name in names:
        path = Path(name)
        if not path.exists():
            raise InvalidInput(f"cannot read {name!r}: there is no such file or folder")
        found += files(path) if path.is_dir() else [path]
    checked = []
    known: dict[str, list[tuple[Workflow, Path]]] = {}
    for path in found:
        try:
            workflow = load_file(path, tasks, types=True)
        except InvalidWorkflow as error:
            checked.append(CheckedFile(str(path), None, None, error.problems))
            continue
        others = known.setdefault(workflow.id, [])
        same = [
            f'{path}: workflow "{workflow.id}" version {workflow.version} is also in {other_path}'
            + ("" if other.version == workflow.version else f", as version {other.version}")
            + "; give the newer one a higher version"
            for other, other_path in others
            if version_order(other.version) == version_order(workflow.version) and other != workflow
        ]
        others.append((workflow, path))
        checked.append(CheckedFile(str(path), workflow.id, workflow.version, same))
    return checked


def load_file(path: Path, tasks: Tasks, *, types: bool = False) -> Workflow:
    """Read and check one file. Raises `InvalidWorkflow` with all that is wrong; with `types` also
    with what will not work if tasks return what they say.
    """
    try:
        document = read_document(path)
    except BadDocument as error:
        raise InvalidWorkflow([str(error)]) from None
    if document.value is None:
        raise InvalidWorkflow([f"{path} is empty; a workflow has an id and steps"])
    return from_document(document, tasks, types=types)


def from_document(document: Document, tasks: Tasks, *, types: bool = False) -> Workflow:
    """Check what a file says."""
    reading = _Reading(document.value)
    workflow = reading.workflow()
    found = reading.problems
    if workflow is not None:
        # What follows from something that could not be read is not told as well.
        unread = [each.place for each in found]
        found += [
            each
            for each in problems(workflow, tasks, types=types)
            if not any(each.place[: len(place)] == place for place in unread)
        ]
    if found or workflow is None:
        found.sort(key=lambda each: document.line(each.place))
        raise InvalidWorkflow([_told(document, each.place, each.reason) for each in found])
    return workflow


class _Reading:
    """Reads each part of a workflow by itself, so that every problem is told."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.problems: list[Problem] = []

    def workflow(self) -> Workflow | None:
        """The workflow, with what could not be read left out."""
        if not isinstance(self.value, dict):
            self._convert(self.value, Workflow, ())
            return None
        fields = self._fields((), self.value, Workflow, {"id": "w", "steps": []})
        params = self.value.get("params")
        if isinstance(params, dict):
            fields["params"] = {
                name: self._convert(each, Param, ("params", name)) or Param()
                for name, each in params.items()
            }
        steps = self.value.get("steps")
        if isinstance(steps, list):
            fields["steps"] = tuple(
                self._step(each, ("steps", index)) for index, each in enumerate(steps)
            )
        return Workflow(**{"id": "w", "steps": (), **fields})

    def _step(self, value: Any, place: Place) -> Step:
        # A name that nobody can refer to.
        number = f"#{place[-1]}"
        if not isinstance(value, dict):
            self._convert(value, Step, place)
            return Step(id=number, task="")
        fields = self._fields(place, value, Step, {"id": "a", "task": "a"})
        return Step(**{"id": number, "task": "", **fields})

    def _fields(
        self, place: Place, value: dict[str, Any], kind: type[Any], required: dict[str, Any]
    ) -> dict[str, Any]:
        """The fields that can be read, each tried with good ones beside it."""
        known = {field.name: field for field in msgspec.structs.fields(kind)}
        for name in required:
            if name not in value:
                reason = f"Object missing required field `{name}`"
                self.problems.append(Problem((*place, name), reason))
        fields = {}
        for name, each in value.items():
            if name not in known:
                reason = f'there is no field "{name}"; {did_you_mean(name, list(known))}'
                self.problems.append(Problem((*place, name), reason))
            elif isinstance(each, _NESTED.get((kind, name), ())):
                continue  # read part by part
            else:
                read = self._convert({**required, name: each}, kind, place)
                if read is not None:
                    fields[name] = getattr(read, name)
        return fields

    def _convert(self, value: Any, kind: type[T], place: Place) -> T | None:
        try:
            return msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            reason, _, path = str(error).partition(" - at `$")
            at = (*place, *_place(path.rstrip("`")))
            unknown = re.search(r"unknown field `(.+)`", reason)
            if unknown is not None:
                at, reason = (*at, unknown[1]), f'there is no field "{unknown[1]}"'
            if reason.endswith("got `float`") and at[-1:] == ("version",):
                reason += '; write it in quotes: "1.10" is another version than "1.1"'
            self.problems.append(Problem(at, reason))
            return None


# What is read part by part.
_NESTED: dict[tuple[type[Any], str], type[Any]] = {
    (Workflow, "params"): dict,
    (Workflow, "steps"): list,
}


def _told(document: Document, place: Place, reason: str) -> str:
    return f"{document.at(place)}: {reason}"


def _place(path: str) -> Place:
    """The way that msgspec tells, as far as it can be followed: `.steps[0].params[...]`."""
    place: list[str | int] = []
    for segment in _SEGMENT.finditer(path):
        name, number = segment.groups()
        if name is None and number is None:
            break  # a key of a mapping, which msgspec does not name
        place.append(name if name is not None else int(number))
    return tuple(place)
