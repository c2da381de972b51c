"""A real PgBouncer in front of a PostgreSQL server of the tests."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
from collections.abc import Iterable
from urllib.parse import urlsplit

import pytest

from tests.support.servers import Server

PATH = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin"
MODES = ["session", "transaction"]
# What a pooler has to swallow if it shall not refuse clients that set something at their start.
SWALLOWED = (
    "search_path,client_min_messages,jit,plan_cache_mode,max_parallel_workers_per_gather,"
    "enable_seqscan,enable_bitmapscan,enable_hashjoin,enable_mergejoin"
)


def find_pgbouncer() -> str:
    """Return the program, or skip the test."""
    found = shutil.which("pgbouncer", path=PATH)
    if found is None:
        pytest.skip("there is no pgbouncer; `make programs` installs it")
    return found


class PgBouncer(Server):
    """All databases of one server, in one pool mode. It refuses to run as root."""

    def __init__(
        self,
        port: int,
        mode: str,
        *,
        size: int = 40,
        swallows: bool = False,
        users: Iterable[str] = ("postgres",),
    ) -> None:
        self._program = find_pgbouncer()
        super().__init__(f"pgbouncer-{mode}")
        self.mode = mode
        settings = {
            "listen_addr": "127.0.0.1",
            "listen_port": self.port,
            "unix_socket_dir": "",
            "auth_type": "trust",
            "auth_file": self.folder / "users.txt",
            "pool_mode": mode,
            "default_pool_size": size,
            "max_client_conn": 1000,
            # An unused session must not keep a database from being dropped.
            "server_idle_timeout": 5,
            "ignore_startup_parameters": f"extra_float_digits{',' + SWALLOWED if swallows else ''}",
        }
        lines = [f"{name} = {value}" for name, value in settings.items()]
        (self.folder / "pgbouncer.ini").write_text(
            "\n".join(["[databases]", f"* = host=127.0.0.1 port={port}", "[pgbouncer]", *lines, ""])
        )
        self.admit(users)
        if self.user() is not None:
            nobody = pwd.getpwnam("nobody")
            for path in (self.folder, *self.folder.iterdir()):
                os.chown(path, nobody.pw_uid, nobody.pw_gid)

    def admit(self, users: Iterable[str]) -> None:
        """Let these users in, from the next start on."""
        text = "".join(f'"{user}" ""\n' for user in users)
        (self.folder / "users.txt").write_text(text)

    def user(self) -> str | None:
        return "nobody" if os.geteuid() == 0 else None

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def command(self) -> list[str]:
        return [self._program, "-q", str(self.folder / "pgbouncer.ini")]

    def ready(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        return True

    def in_front_of(self, url: str) -> str:
        """Return the URL of a store of the server, through this pooler."""
        parts = urlsplit(url)
        login = parts.netloc.rpartition("@")[0]
        return parts._replace(netloc=f"{login}@127.0.0.1:{self.port}").geturl()
