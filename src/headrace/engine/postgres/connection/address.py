"""Where a store is: a URL taken apart, without the secrets in it being shown again."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlencode, urlsplit

import msgspec

from headrace.errors import InvalidSetting

_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,62}")
DEFAULT_SCHEMA = "headrace"


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """A server, a database and the schema that holds everything of one store."""

    dsn: str
    schema: str
    shown: str

    @property
    def quoted_schema(self) -> str:
        """The schema as it is written in SQL. It has been checked, so it needs no escaping."""
        return f'"{self.schema}"'


def parse_address(url: str) -> Address:
    """Take a postgresql:// URL apart. `schema` is ours; other parameters are the driver's."""
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
        parameters = parse_qsl(parts.query, keep_blank_values=True)
    except ValueError:
        parts = None
    # Without "//" everything after the scheme would be taken for the name of a database.
    if parts is None or not url.startswith(f"{parts.scheme}://"):
        raise InvalidSetting(
            "HEADRACE_URL cannot be read; use postgresql://user:password@host:5432/database"
        )
    schema = DEFAULT_SCHEMA
    others = []
    for name, value in parameters:
        if name == "schema":
            schema = value
        else:
            others.append((name, value))
            if name == "host":
                host = value
    if not _SCHEMA.fullmatch(schema) or schema.startswith("pg_"):
        raise InvalidSetting(
            f"schema {schema!r} in HEADRACE_URL is not valid; use 1 to 63 lower-case letters, "
            'digits and "_", starting with a letter or "_" and not with "pg_"'
        )
    return Address(
        dsn=parts._replace(query=urlencode(others)).geturl(),
        schema=schema,
        shown=f"{host or 'the default host'}{parts.path}",
    )
