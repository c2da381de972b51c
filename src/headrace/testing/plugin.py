"""The pytest plugin. Every project that has Headrace installed loads it, so it imports nothing
before a fixture is asked for. The fixtures are plain ones: any way of running async tests will do.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from headrace.app import App
    from headrace.clock import Clock
    from headrace.testing.running import Runner

SETTING = "headrace_app"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let a project name its App once."""
    parser.addini(
        SETTING,
        'the App that the fixture "headrace_app" lends to tests, as module:attribute '
        "(default: a new one without tasks)",
        default="",
    )


@pytest.fixture
def headrace_app(pytestconfig: pytest.Config) -> Iterator[App]:
    """An App on an empty engine in memory, with a clock that can be advanced.

    It is the one that the setting `headrace_app` names, with its tasks, or a new one. A project
    may as well define a fixture of this name itself, around `headrace.testing.override`.
    """
    from headrace.testing.overriding import override  # noqa: PLC0415

    with override(_app(pytestconfig.getini(SETTING))) as app:
        yield app


@pytest.fixture
def headrace_clock(headrace_app: App) -> Clock:
    """The clock of `headrace_app`: `headrace_clock.advance(3600)`."""
    return headrace_app.clock


@pytest.fixture
def headrace_run(headrace_app: App) -> Runner:
    """Runs the jobs of `headrace_app`: `await headrace_run(advance=3600)`."""
    from functools import partial  # noqa: PLC0415

    from headrace.testing.running import run  # noqa: PLC0415

    return partial(run, headrace_app)


def _app(reference: str) -> App:
    from headrace.app import App  # noqa: PLC0415
    from headrace.config import Settings  # noqa: PLC0415

    if not reference:
        # Not the settings of this machine: a test is the same everywhere.
        return App(settings=Settings(url="sqlite://"))
    from importlib import import_module  # noqa: PLC0415

    module, _, attribute = reference.partition(":")
    try:
        found = getattr(import_module(module), attribute or "app")
    except (ImportError, AttributeError) as error:
        raise pytest.UsageError(
            f'headrace_app = "{reference}" cannot be loaded: {error}; name it as module:attribute'
        ) from error
    if not isinstance(found, App):
        raise pytest.UsageError(
            f'headrace_app = "{reference}" is a {type(found).__name__}, not a headrace.App'
        )
    return found
