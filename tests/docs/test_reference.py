"""The reference pages are complete and tell what the code says."""

from __future__ import annotations

import re
import tomllib

import msgspec
import pytest

import headrace
from headrace import errors
from headrace.config import Settings
from headrace.model.status import Status
from tests.docs.pages import DOCS, ROOT
from tests.docs.tables import lane_free_moves, moves_table, settings_table

REFERENCE = DOCS / "reference"


def page(name: str) -> str:
    return (REFERENCE / f"{name}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [field.name for field in msgspec.structs.fields(Settings)])
def test_every_setting_is_explained(name: str) -> None:
    text = page("settings")
    assert f"`{name}`" in text
    assert f"`HEADRACE_{name.upper()}`" in text


def test_the_settings_table_tells_the_real_defaults() -> None:
    assert settings_table() in page("settings"), (
        f"put this table into docs/reference/settings.md:\n{settings_table()}"
    )


ERRORS = sorted(
    name
    for name, value in vars(errors).items()
    if isinstance(value, type) and value.__module__ == errors.__name__
)


@pytest.mark.parametrize("name", ERRORS)
def test_every_error_is_explained(name: str) -> None:
    assert re.search(rf"`{name}`", page("errors"))


@pytest.mark.parametrize("name", headrace.__all__)
def test_every_public_name_is_in_the_api_reference(name: str) -> None:
    assert re.search(rf"`(headrace\.)?{name}\b", page("api"))


@pytest.mark.parametrize("status", list(Status))
def test_every_status_is_explained(status: Status) -> None:
    assert f"`{status.value}`" in page("statuses")


def test_the_state_machine_is_printed_as_it_is() -> None:
    assert moves_table() in page("statuses"), (
        f"put this table into docs/reference/statuses.md:\n{moves_table()}"
    )
    assert lane_free_moves() in page("statuses"), (
        f"put this table into docs/reference/statuses.md:\n{lane_free_moves()}"
    )


def test_contributors_are_shown_the_real_layers() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    [contract] = [
        each for each in settings["tool"]["importlinter"]["contracts"] if each["type"] == "layers"
    ]
    layers = "\n".join(re.sub(r"headrace\.|[()]", "", layer) for layer in contract["layers"])
    assert f"```\n{layers}\n```" in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), (
        f"put these layers into CONTRIBUTING.md:\n{layers}"
    )
