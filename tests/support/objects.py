"""A real S3 server for tests: SeaweedFS from a wheel, on loopback, with authentication."""

from __future__ import annotations

import json
import secrets
import socket
import sys
from pathlib import Path
from urllib.parse import urlencode

import obstore
from obstore.store import S3Store

from headrace.artifacts.address import parse_s3
from tests.support.servers import Server, free_port

BUCKET = "headrace-tests"
REGION = "us-east-1"


def objects_in(artifacts: str) -> set[str]:
    """Return all objects of a store, by its setting `artifacts`: what the server itself lists."""
    where = parse_s3(artifacts)
    assert where.endpoint is not None
    store = S3Store(
        where.bucket,
        prefix=where.prefix or None,
        endpoint=where.endpoint,
        region=where.region,
        client_options={"allow_http": True},
    )
    return {found["path"] for page in obstore.list(store) for found in page}


class S3Server(Server):
    """SeaweedFS: one process with one identity, which alone may read and write."""

    def __init__(self) -> None:
        super().__init__("s3")
        self.binary = Path(sys.executable).parent / "weed"
        self.access_key = f"TEST{secrets.token_hex(8).upper()}"
        self.secret_key = secrets.token_hex(20)
        # Each part of it listens on two ports, one of them for gRPC.
        self.ports = {
            f"{part}.port{kind}": free_port()
            for part in ("master", "volume", "filer", "s3")
            for kind in ("", ".grpc")
        }
        self.ports["s3.port"] = self.port
        self.config = self.folder / "identities.json"
        credentials = {"accessKey": self.access_key, "secretKey": self.secret_key}
        identity = {
            "name": "tests",
            "credentials": [credentials],
            "actions": ["Admin", "Read", "Write", "List", "Tagging"],
        }
        self.config.write_text(json.dumps({"identities": [identity]}))

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return self.artifacts("")

    def artifacts(self, prefix: str) -> str:
        """The setting `artifacts` for a store of its own below this prefix."""
        asked = urlencode({"endpoint": self.endpoint, "region": REGION})
        return f"s3://{BUCKET}/{prefix}?{asked}"

    def environment(self) -> dict[str, str]:
        """The credentials, as programs find them, and the way, which leads through no proxy."""
        return {
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "NO_PROXY": "127.0.0.1",
        }

    def command(self) -> list[str]:
        return [
            *(str(self.binary), "server", "-dir", str(self.folder)),
            *("-ip", "127.0.0.1", "-ip.bind", "127.0.0.1"),
            *("-s3", "-s3.config", str(self.config)),
            *("-s3.iam=false", "-s3.port.iceberg=0", "-s3.port.lance=0"),
            *(f"-{part}.localSocket={self.folder / part}.sock" for part in ("s3", "filer")),
            *("-master.telemetry=false", "-master.volumeSizeLimitMB=1024"),
            # Its master is alone, and would wait long for others after a restart.
            *("-master.electionTimeout=500ms", "-master.heartbeatInterval=100ms"),
            *("-volume.max=100", "-volume.minFreeSpace=1GiB"),
            *(f"-{name}={port}" for name, port in self.ports.items()),
        ]

    def destroy(self) -> None:
        super().destroy()
        # It leaves its sockets, which it makes outside of its folder, behind.
        for name, port in self.ports.items():
            if name.endswith(".grpc"):
                part = name.partition(".")[0]
                Path(f"/tmp/seaweedfs-{part}-grpc-{port}.sock").unlink(missing_ok=True)

    def ready(self) -> bool:
        """Whether it answers who may not, and so may be asked by who may."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                connection.sendall(b"GET /status HTTP/1.0\r\n\r\n")
                return connection.recv(64).startswith(b"HTTP/")
        except OSError:
            return False
