"""Where the tables of a bundle are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

from headrace.engine.stored_text import redacted
from headrace.errors import InvalidSetting
from headrace.installed_bundles import variable_prefix

LONGEST_SCHEMA = 63
FORMS = "sqlite:///path.db or postgresql://user@host/database"


@dataclass(frozen=True, slots=True)
class TablesAddress:
    """A database, and in PostgreSQL the schema of the tables."""

    url: str
    schema: str | None = None
    path: Path | None = None
    """The file of a SQLite database; None for one in memory."""

    @property
    def postgres(self) -> bool:
        """Return whether it is in PostgreSQL."""
        return self.schema is not None

    @property
    def in_memory(self) -> bool:
        """Return whether it is in the memory of this process."""
        return not self.postgres and self.path is None

    def __repr__(self) -> str:
        return f"<TablesAddress {self}>"

    def __str__(self) -> str:
        """Return where it is, fit for people: without a password."""
        place = redacted(self.url)
        return f"{place}, schema {self.schema}" if self.schema else place


def find_address(name: str, given: str | None, engine_url: str) -> TablesAddress:
    """Return where the tables of a bundle are: what is given, else the engine's PostgreSQL, else a
    SQLite file beside the store.
    """
    scheme = urlsplit(given or engine_url).scheme
    if scheme in ("postgresql", "postgres"):
        return _in_postgres(name, given, engine_url)
    if given is not None:
        if scheme != "sqlite":
            variable = f"{variable_prefix(name)}URL"
            raise InvalidSetting(
                f"{variable} has the unknown form {redacted(given)!r}; use {FORMS}"
            )
        return TablesAddress(given, path=_file(given))
    if scheme != "sqlite":
        # The store is a server: this process's folder is all that there is.
        path = Path(f"headrace-{name}.db").absolute()
    else:
        store = _file(engine_url)
        if store is None:
            return TablesAddress("sqlite:///:memory:")
        path = store.with_name(f"{store.stem}-{name}{store.suffix}")
    return TablesAddress(f"sqlite:///{quote(str(path))}", path=path)


def _in_postgres(name: str, given: str | None, engine_url: str) -> TablesAddress:
    """Return a schema beside the engine's: two stores in one database keep their tables apart. A
    URL of the bundle's own may name another.
    """
    # Both need no driver.
    from headrace.engine.postgres.connection.address import parse_address  # noqa: PLC0415

    address = parse_address(given or engine_url)
    schema = f"{address.schema}_{name.replace('-', '_')}"
    if given is not None and "schema" in parse_qs(urlsplit(given).query):
        schema = address.schema
    if len(schema.encode()) > LONGEST_SCHEMA:
        raise InvalidSetting(
            f"the schema {schema} for the tables of bundle {name} has more than {LONGEST_SCHEMA} "
            f"bytes; name another: {variable_prefix(name)}URL=postgresql://…?schema=…"
        )
    return TablesAddress(address.dsn, schema=schema)


def _file(url: str) -> Path | None:
    from headrace.engine.sqlite.connection.address import parse_address  # noqa: PLC0415

    return parse_address(url).absolute().path
