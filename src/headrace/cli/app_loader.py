"""From `module:attribute` to the App that it names, with errors that help."""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
import traceback
from types import ModuleType
from typing import Any

import msgspec

from headrace.app import App
from headrace.config import Settings
from headrace.errors import InvalidInput
from headrace.suggest import did_you_mean, nearest

OURS = os.path.dirname(os.path.dirname(__file__)) + os.sep
REMEDY = "name it as --app module:attribute (or HEADRACE_APP)"


def load_app(reference: str) -> App:
    """Import the module and find the App in it. The current folder is on the path."""
    module_name, _, attribute = reference.partition(":")
    if module_name.endswith(".py") or "/" in module_name:
        likely = module_name.removesuffix(".py").strip("./").replace("/", ".")
        raise InvalidInput(
            f'--app takes a module, not a file: write "{likely}" instead of "{module_name}"'
        )
    if not all(part.isidentifier() for part in module_name.split(".")):
        raise InvalidInput(f'--app "{reference}" is not the name of a module; {REMEDY}')
    return find_app(_import(module_name), attribute or "app")


def find_app(module: ModuleType, attribute: str) -> App:
    """The App of this name in a module."""
    found = vars(module).get(attribute)
    if isinstance(found, App):
        return found
    where = f'module "{module.__name__}"'
    apps = [name for name, value in vars(module).items() if isinstance(value, App)]
    named = " or ".join(f'"{module.__name__}:{name}"' for name in apps)
    if found is None and attribute not in vars(module):
        no_app = "it has no headrace.App; make one: app = headrace.App()"
        near = did_you_mean(attribute, vars(module), otherwise=no_app)
        hint = f"use {named}" if apps else near
        raise InvalidInput(f'{where} has no "{attribute}"; {hint}')
    hint = f"use {named}" if apps else f"{REMEDY}, where it is made by headrace.App(…)"
    raise InvalidInput(
        f'"{attribute}" in {where} is a {type(found).__name__}, not a headrace.App; {hint}'
    )


def reconfigure(app: App, /, **changes: Any) -> App:
    """Let what the command line says win over what the App was made with. Before it is opened."""
    given = {name: value for name, value in changes.items() if value is not None}
    settings: Settings = msgspec.structs.replace(app.settings, **given)
    if settings != app.settings:
        app.reconfigure(settings)
    return app


def _import(name: str) -> ModuleType:
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise InvalidInput(_not_found(name, error.name, here)) from error
        raise InvalidInput(_broken(name, error)) from error
    except (Exception, SystemExit) as error:
        raise InvalidInput(_broken(name, error)) from error


def _not_found(name: str, missing: str, here: str) -> str:
    parent, _, leaf = missing.rpartition(".")
    paths = list(getattr(sys.modules.get(parent), "__path__", [])) if parent else [here]
    names = [module.name for module in pkgutil.iter_modules(paths)]
    near = [f"{parent}.{each}".lstrip(".") for each in nearest(leaf, names)]
    hint = f'did you mean "{near[0]}"?' if near else "run it from the folder that holds the module"
    return f'no module named "{missing}" for --app {name}, looked in {here} and on the path; {hint}'


def _broken(name: str, error: BaseException) -> str:
    """What went wrong inside somebody's module, and on which line."""
    where = ""
    if isinstance(error, SyntaxError) and error.filename:
        where = f" ({error.filename} line {error.lineno})"
    else:
        frames = [
            frame
            for frame in traceback.extract_tb(error.__traceback__)
            if "importlib" not in frame.filename and frame.filename != __file__
        ]
        # The line that a person can mend: where our decorators were given what they refuse.
        theirs = [frame for frame in frames if not frame.filename.startswith(OURS)]
        if frames:
            at = (theirs or frames)[-1]
            where = f" ({at.filename} line {at.lineno})"
    return (
        f'loading "{name}" failed: {type(error).__name__}: {error}{where}; '
        "run it again with --debug for the traceback"
    )
