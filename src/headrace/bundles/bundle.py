"""What a package says about its bundle."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from headrace import installed_bundles
from headrace.bundles.names import check_bundle_name
from headrace.errors import InvalidSetting

if TYPE_CHECKING:
    import click

    from headrace.app import App
    from headrace.bundles.routes import Routes
    from headrace.bundles.setup import Setup

    Register = Callable[[App, Setup], None]
    MakeRoutes = Callable[[Setup], Routes]
    MakeCommands = Callable[[], click.Group]
    Demo = Callable[[App, Setup], Awaitable[None]]

# A setting of this name would be the address of the tables.
URL = "url"


@dataclass(frozen=True, slots=True)
class Tables:
    """Tables of a bundle: the package that holds its Alembic scripts.

    The scripts are modules of that package, or of a folder `versions` in it; there is no `env.py`.
    `connections` is how many connections a process opens at most.
    """

    package: str
    _: KW_ONLY
    connections: int = 4


@dataclass(frozen=True, slots=True)
class Page:
    """The page of a bundle: a package or folder of static files with an `index.html`."""

    package: str
    _: KW_ONLY
    title: str


@dataclass(frozen=True, slots=True)
class Bundle:
    """An application that can be added to a running Headrace.

    Routes are below `/name`, commands below `headrace name`, settings are `HEADRACE_NAME_…`. Each
    function may be given as text, `"package.module:function"`: then it is imported when it is used.
    """

    name: str
    _: KW_ONLY
    summary: str
    settings: type[msgspec.Struct] | None = None
    register: Register | str | None = None
    routes: MakeRoutes | str | None = None
    commands: MakeCommands | str | None = None
    tables: Tables | None = None
    page: Page | None = None
    demo: Demo | str | None = None

    def __post_init__(self) -> None:
        check_bundle_name(self.name)
        if self.settings is not None:
            _check_settings(self.name, self.settings)
        installed_bundles.made.add(self.name)

    @property
    def prefix(self) -> str:
        """Return the path that all its routes begin with."""
        return f"/{self.name}"


def _check_settings(name: str, settings: Any) -> None:
    if not (isinstance(settings, type) and issubclass(settings, msgspec.Struct)):
        raise InvalidSetting(
            f'bundle "{name}": settings must be a class derived from msgspec.Struct, '
            f"got {settings!r}"
        )
    if any(field.name == URL for field in msgspec.structs.fields(settings)):
        variable = f"{installed_bundles.variable_prefix(name)}URL"
        raise InvalidSetting(
            f'bundle "{name}": a setting cannot be called "{URL}", because {variable} says where '
            "its tables are; give it another name"
        )
