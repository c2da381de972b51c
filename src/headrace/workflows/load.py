"""From a file to a checked workflow."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from headrace.errors import InvalidInput, InvalidWorkflow, MissingDriver
from headrace.workflows.check import Tasks, problems
from headrace.workflows.model import Workflow
from headrace.workflows.references import Place

try:
    from headrace.config_files import BadDocument, Document, read_document
except ModuleNotFoundError as error:
    raise MissingDriver(
        f'workflow files need {error.name}; install it: pip install "headrace[workflows]"'
    ) from error

ENDINGS = (".json", ".yaml", ".yml")

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
    """Check files, and all workflow files of folders."""
    found: list[Path] = []
    for name in names:
        path = Path(name)
        if not path.exists():
            raise InvalidInput(f"cannot read {name!r}: there is no such file or folder")
        found += files(path) if path.is_dir() else [path]
    checked = []
    for path in found:
        try:
            workflow = load_file(path, tasks)
        except InvalidWorkflow as error:
            checked.append(CheckedFile(str(path), None, None, error.problems))
        else:
            checked.append(CheckedFile(str(path), workflow.id, workflow.version, []))
    return checked


def load_file(path: Path, tasks: Tasks) -> Workflow:
    """Read and check one file. Raises `InvalidWorkflow` with all that is wrong."""
    try:
        document = read_document(path)
    except BadDocument as error:
        raise InvalidWorkflow([str(error)]) from None
    if document.value is None:
        raise InvalidWorkflow([f"{path} is empty; a workflow has an id and steps"])
    return from_document(document, tasks)


def from_document(document: Document, tasks: Tasks) -> Workflow:
    """Check what a file says."""
    workflow = _convert(document)
    found = sorted(problems(workflow, tasks), key=lambda each: document.line(each.place))
    if found:
        raise InvalidWorkflow([_told(document, each.place, each.reason) for each in found])
    return workflow


def _convert(document: Document) -> Workflow:
    try:
        return msgspec.convert(document.value, Workflow)
    except msgspec.ValidationError as error:
        reason, _, path = str(error).partition(" - at `$")
        place = _place(path.rstrip("`"))
        known = re.search(r"unknown field `(.+)`", reason)
        if known is not None:
            place = (*place, known[1])
            reason = f'there is no field "{known[1]}"'
        raise InvalidWorkflow([_told(document, place, reason)]) from None


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
