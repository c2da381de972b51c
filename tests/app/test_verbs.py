"""An App has every verb that a Client has."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from headrace.app import App
from headrace.client import Client

# Names that mean something else on an App, and what to call there.
OTHER_NAMES = {
    "schedules": "list_schedules",  # `app.schedules` holds what code declares
    "schedule": "get_schedule",  # `@app.schedule(…)` declares one
    "workflows": "list_workflows",  # `app.workflows` holds files and code
    "workflow": "get_workflow",  # `app.workflow(…)` defines one in code
    "artifacts": "list_artifacts",  # `app.artifacts` has verbs of its own
}
# What only a server has.
OF_A_SERVER = {
    "url": "an App has settings.url",
    "tasks": "`app.tasks` are the tasks themselves",
    "metrics": "a server exposes them; an App reads them from `telemetry`",
    "events": "a server streams them; an App waits with `result`, or asks with `get`",
    "audit": "the log of what was done over HTTP",
    "call": "routes of bundles; whoever has the App has the bundle itself",
}


def verbs(kind: type) -> dict[str, Any]:
    return {name: each for name, each in inspect.getmembers(kind) if not name.startswith("_")}


def parameters(verb: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    return dict(list(inspect.signature(verb).parameters.items())[1:])


CLIENT = [name for name in verbs(Client) if name not in OF_A_SERVER]


@pytest.mark.parametrize("name", CLIENT)
def test_an_app_has_every_verb_of_a_client(name: str) -> None:
    own = getattr(App, OTHER_NAMES.get(name, name))
    theirs = getattr(Client, name)
    assert inspect.iscoroutinefunction(own) == inspect.iscoroutinefunction(theirs)
    assert inspect.isasyncgenfunction(own) == inspect.isasyncgenfunction(theirs)
    mine = parameters(own)
    for each, wanted in parameters(theirs).items():
        assert each in mine, f"App.{name} has no parameter {each}"
        assert (mine[each].kind, mine[each].default) == (wanted.kind, wanted.default), each
    more = [mine[each] for each in mine.keys() - parameters(theirs).keys()]
    assert all(each.default is not inspect.Parameter.empty for each in more), "they are optional"


def test_the_exceptions_are_needed() -> None:
    assert OTHER_NAMES.keys() | OF_A_SERVER.keys() <= verbs(Client).keys()
    for name in OTHER_NAMES:
        assert not inspect.iscoroutinefunction(getattr(App, name, None))
    for name in OF_A_SERVER.keys() - {"tasks"}:
        assert not hasattr(App, name)
