"""Where a Redis server is: a URL taken apart, and shown again without its password."""

from __future__ import annotations

import ssl
from typing import Self
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec

from headrace.errors import EngineError, InvalidSetting
from headrace.model.names import check_name

FORMS = "redis://user:password@host:6379/0, rediss://… for TLS, or unix:///path.sock?db=0"
TLS_OPTIONS = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
OPTIONS = ("namespace", "db", "timeout", *TLS_OPTIONS)


class RedisAddress(msgspec.Struct, frozen=True, kw_only=True):
    """A server, a database and our namespace in it. `timeout` is how many seconds it may
    be silent while an answer is awaited.
    """

    host: str = "127.0.0.1"
    port: int = 6379
    path: str | None = None
    database: int = 0
    username: str | None = None
    password: str | None = None
    tls: bool = False
    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    namespace: str = "headrace"
    timeout: float = 10.0

    @classmethod
    def parse(cls, url: str) -> Self:
        """Read a URL, or say which part of it is wrong."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise InvalidSetting(f"the Redis URL cannot be read: {error}; use {FORMS}") from None
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        for name in query:
            if name not in OPTIONS:
                raise InvalidSetting(
                    f"the Redis URL has the unknown option {name!r}; known are {', '.join(OPTIONS)}"
                )
            if name in TLS_OPTIONS and parts.scheme != "rediss":
                raise InvalidSetting(
                    f"the Redis URL has {name}, which is for TLS, but begins with "
                    f"{parts.scheme}://; use rediss://"
                )
        if "ssl_keyfile" in query and "ssl_certfile" not in query:
            raise InvalidSetting(
                "the Redis URL has ssl_keyfile without ssl_certfile; name the certificate, too"
            )
        local = parts.scheme == "unix"
        database = query.get("db", "0" if local else parts.path.strip("/") or "0")
        return cls(
            host=parts.hostname or "127.0.0.1",
            port=port or 6379,
            path=unquote(parts.path) if local else None,
            database=int(_number("db", database)),
            username=unquote(parts.username) if parts.username else None,
            password=unquote(parts.password) if parts.password else None,
            tls=parts.scheme == "rediss",
            ca_file=query.get("ssl_ca_certs"),
            certificate_file=query.get("ssl_certfile"),
            key_file=query.get("ssl_keyfile"),
            namespace=check_name("namespace", query.get("namespace", "headrace")),
            timeout=_number("timeout", query.get("timeout", "10")),
        )

    def __str__(self) -> str:
        """The server, fit for messages."""
        return self.path if self.path is not None else f"{self.host}:{self.port}"

    @property
    def prefix(self) -> str:
        """What every key begins with: one hash tag, so that all of them are in one place."""
        return f"{{{self.namespace}}}:"

    @property
    def ssl_context(self) -> ssl.SSLContext | None:
        """How to talk TLS, if that is asked for. Certificates are always checked."""
        if not self.tls:
            return None
        name, file = "ssl_ca_certs", self.ca_file
        try:
            context = ssl.create_default_context(cafile=file)
            if self.certificate_file is not None:
                name, file = "ssl_certfile", self.certificate_file
                context.load_cert_chain(self.certificate_file, self.key_file)
        except OSError as error:  # also what OpenSSL says of their content
            raise EngineError(
                f"the Redis URL has {name}={file!r}, which cannot be used ({error}). Name a file "
                "in PEM form that this user can read, and for a certificate its key as ssl_keyfile"
            ) from error
        return context

    def greeting(self) -> tuple[tuple[str, ...], ...]:
        """The commands that begin a connection. The first one's answer tells who answers."""
        hello: tuple[str, ...] = ("HELLO", "2")
        if self.password is not None:
            hello += ("AUTH", self.username or "default", self.password)
        return (
            (*hello, "SETNAME", f"headrace:{self.namespace}"),
            ("SELECT", str(self.database)),
        )


def _number(name: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1e6:
        raise InvalidSetting(f"the Redis URL has {name}={text!r}; use a number of 0 or more")
    return number
