"""From a sqlite:// URL to a file and its settings."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from headrace.engine.stored_text import redacted
from headrace.errors import EngineError, InvalidSetting

FORMS = "sqlite:///relative.db, sqlite:////absolute/path.db or sqlite:///:memory:"
SYNCHRONOUS = ("full", "normal", "off")


class SqliteAddress(msgspec.Struct, frozen=True):
    """Where the database is; `path` None is a database in memory that this engine alone sees."""

    path: Path | None
    synchronous: str = "full"

    def __str__(self) -> str:
        return ":memory:" if self.path is None else str(self.path)

    def absolute(self) -> SqliteAddress:
        """The same, wherever this program's folder is from now on."""
        return self if self.path is None else SqliteAddress(self.path.absolute(), self.synchronous)

    def check_folder(self) -> None:
        """Refuse a file whose folder is missing, which SQLite would call "unable to open"."""
        if self.path is None:
            return
        folder = self.path.absolute().parent
        if not folder.is_dir():
            raise EngineError(
                f"The folder {str(folder)!r} for the database {self.path.name!r} does not exist. "
                "Create it, or name another file in HEADRACE_URL."
            )
        if self.path.is_dir():
            raise EngineError(
                f"{str(self.path)!r} is a folder, not a database file. Name a file in it."
            )


def parse_address(url: str) -> SqliteAddress:
    """Read a sqlite:// URL, or say what is wrong with it."""
    parts, shown = urlsplit(url), redacted(url)
    if parts.scheme != "sqlite":
        raise InvalidSetting(f"HEADRACE_URL {shown!r} is not a SQLite URL; use {FORMS}")
    if parts.netloc:
        raise InvalidSetting(
            f"HEADRACE_URL {shown!r} names a host, {parts.hostname!r}; a file takes three slashes: "
            f"{FORMS}"
        )
    if parts.fragment:
        raise InvalidSetting(
            f"HEADRACE_URL {shown!r} has a part after '#'; write '#' in a file name as %23"
        )
    settings = _settings(shown, parts.query)
    name = unquote(parts.path.removeprefix("/"))
    if "\0" in name:
        raise InvalidSetting(f"HEADRACE_URL {shown!r} has a file name with a zero byte; remove it")
    path = None if name in ("", ":memory:") else Path(name)
    return SqliteAddress(path, settings.get("synchronous", "full"))


def _settings(shown: str, query: str) -> dict[str, str]:
    settings: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name != "synchronous":
            raise InvalidSetting(
                f"HEADRACE_URL {shown!r} has the unknown parameter {name!r}; known: 'synchronous'"
            )
        if value.lower() not in SYNCHRONOUS:
            raise InvalidSetting(
                f"HEADRACE_URL parameter synchronous must be one of {', '.join(SYNCHRONOUS)}, "
                f"got {value!r}"
            )
        settings[name] = value.lower()
    return settings
