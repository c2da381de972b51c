"""Finding a task again in another process: by the module and the name that hold it."""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from headrace.errors import InvalidSetting, UnknownTask
from headrace.orchestrator.isolation.protocol import Target
from headrace.task import Task
from headrace.task.codec import encode

# The name that a script has in a child, so that its `if __name__ == "__main__"` does not run.
MAIN = "__headrace_main__"


def locate(task: Task[..., Any], app_path: str | None) -> Target:
    """Where a child process finds this task.

    Tried in turn: the module of its function, the module of the app path ("module:app"), and
    every other module that is loaded.
    """
    likely = [task.function.__module__, (app_path or "").partition(":")[0]]
    for name in [*likely, *sys.modules]:
        holder = _holder(sys.modules.get(name), task)
        if holder is not None:
            return _target(name, holder)
    raise UnknownTask(
        f'task "{task.name}" has isolate="process", but no module holds it, so that a child '
        f"process cannot find it; keep {task.function.__qualname__}, or the App that it is "
        f"registered with, at the top level of {task.function.__module__}"
    )


def load(target: Target, settings: bytes | None) -> Any:
    """In the child: import the module and answer what holds the tasks.

    Its App is given the worker's settings, which the command line or a test may have changed: what
    a handler enqueues has to go where the worker's own jobs are.
    """
    module = _import(target)
    holder = getattr(module, target.attribute, None)
    if not isinstance(holder, Task) and not _is_app(holder):
        raise UnknownTask(
            f"{target.module} has no App or task called {target.attribute!r} in a child process; "
            "make it whenever the module is imported"
        )
    app: Any = holder.sink if isinstance(holder, Task) else holder
    if settings is not None and _is_app(app) and settings != encode(app.settings):
        app.reconfigure(msgspec.json.decode(settings, type=type(app.settings)))
    if _is_app(app):
        app.isolated()
    return holder


def settings_of(task: Task[..., Any]) -> bytes | None:
    """In the worker: the settings of the App that a task is registered with."""
    app: Any = task.sink
    return encode(app.settings) if _is_app(app) else None


def pick(holder: Any, name: str) -> Task[..., Any]:
    """In the child: the task of this name."""
    if isinstance(holder, Task) and holder.name == name:
        return holder
    task: Task[..., Any] | None = holder.tasks.get(name) if _is_app(holder) else None
    if task is None:
        raise UnknownTask(
            f'task "{name}" is not there in a child process; register it at the top level of its '
            'module, outside of `if __name__ == "__main__"`'
        )
    return task


def known(holder: Any) -> Mapping[str, Task[..., Any]]:
    """In the child: the tasks that are known there."""
    app: Any = holder.sink if isinstance(holder, Task) else holder
    if _is_app(app):
        tasks: Mapping[str, Task[..., Any]] = app.tasks
        return tasks
    return {holder.name: holder}


def _holder(module: ModuleType | None, task: Task[..., Any]) -> str | None:
    """The name of what holds a task in a module: an App before the task itself, so that one
    child serves all the tasks of an App.
    """
    if not isinstance(module, ModuleType):
        return None
    found = None
    for name, value in list(vars(module).items()):
        if value is task:
            found = name
        elif _is_app(value) and value.tasks.get(task.name) is task:
            return name
    return found


def _is_app(value: Any) -> bool:
    # By name: the App is above this room and must not be imported here.
    return any(
        cls.__name__ == "App" and cls.__module__ == "headrace.app" for cls in type(value).__mro__
    )


def _target(name: str, attribute: str) -> Target:
    module = sys.modules.get(name)
    file = getattr(module, "__file__", None)
    path = None if file is None else str(Path(file).resolve())
    if name != "__main__":
        return Target(name, attribute, path)
    spec = getattr(module, "__spec__", None)
    if spec is not None:
        return Target(spec.name, attribute, path)
    if path is None or not Path(path).is_file():
        raise InvalidSetting(
            'isolate="process" needs a file that a child process can load; '
            "move the task from this session into a module"
        )
    return Target(MAIN, attribute, path)


def _import(target: Target) -> ModuleType:
    if target.module != MAIN:
        try:
            return importlib.import_module(target.module)
        except ModuleNotFoundError as error:
            missing = error.name or ""
            ours = target.module == missing or target.module.startswith(f"{missing}.")
            if target.file is None or not ours:
                raise
    file = target.file or ""
    loader = importlib.machinery.SourceFileLoader(target.module, file)
    spec = importlib.util.spec_from_file_location(target.module, file, loader=loader)
    if spec is None:
        raise InvalidSetting(f"{file} cannot be loaded as a module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[target.module] = module
    loader.exec_module(module)
    return module
