"""Commands of bundles, as commands of `headrace`: found by name, imported when they are used."""

from __future__ import annotations

import functools
import inspect
from typing import Any

import click

from headrace.bundles import Bundle
from headrace.bundles.discover import find_bundle
from headrace.bundles.imports import resolve, told
from headrace.cli.bundles.session import BundleSession
from headrace.cli.command import root_options, run_body
from headrace.errors import HeadraceError, InvalidInput
from headrace.installed_bundles import installed


def bundle_group(name: str) -> click.Command | None:
    """Return the command group of an installed bundle; None if there is no bundle of that name."""
    if name not in installed():
        return None
    try:
        bundle = find_bundle(name).load()
        commands = bundle.commands if isinstance(bundle, Bundle) else None
        make = resolve(name, "commands", commands)
        group = None if make is None else adopted(make(), name)
    except (HeadraceError, click.ClickException):
        raise
    except Exception as error:
        raise InvalidInput(f'bundle "{name}" was not loaded: {told(error)}') from error
    if group is None:
        raise InvalidInput(f'bundle "{name}" has no commands; see: headrace bundles')
    return group


def adopted(command: click.Command, bundle: str) -> click.Command:
    """Give commands whose functions are `async def` the options that ours have, and a session."""
    if isinstance(command, click.Group):
        for each in command.commands.values():
            adopted(each, bundle)
        command.name = command.name or bundle
        return command
    callback = command.callback
    if callback is None or not inspect.iscoroutinefunction(callback):
        return command
    command.callback = functools.partial(run_body, callback, _session_class(bundle))
    taken = {option for each in command.params for option in each.opts}
    json = click.Option(["--json"], is_flag=True, help="Print JSON.")
    command.params += [each for each in (json, *root_options()) if each.opts[0] not in taken]
    return command


def _session_class(bundle: str) -> Any:
    return type("BundleSession", (BundleSession,), {"bundle_name": bundle})
