"""A server without keys is not opened to others by a proxy, as far as that can be told."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

import headrace
from tests.server.conftest import a_key, bearer, client_of, problem
from tests.server.test_connections import line_to, rest_of
from tests.support.processes import until
from tests.support.servers import free_port

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
CONFIGURATION = """
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 64; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{port};
        location / {{ proxy_pass {to}; {more} }}
    }}
}}
"""


@contextmanager
def nginx(folder: Path, to: str, more: str = "") -> Iterator[str]:
    """The real one, in front of a server."""
    port = free_port()
    file = folder / "nginx.conf"
    file.write_text(CONFIGURATION.format(folder=folder, port=port, to=to, more=more))
    assert NGINX is not None
    process = subprocess.Popen([NGINX, "-c", str(file), "-p", str(folder)], stderr=subprocess.PIPE)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.communicate(timeout=30)


def as_nginx_sends_it(port: int | None) -> bytes:
    """What `proxy_pass http://127.0.0.1:3989;` makes of `GET /queues`, byte by byte."""
    head = f"GET /queues HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n"
    return f"{head}User-Agent: curl/8.5.0\r\nAccept: */*\r\n\r\n".encode()


async def test_what_nginx_sends_is_not_from_this_machine(local: httpx.AsyncClient) -> None:
    async with line_to(local, as_nginx_sends_it(local.base_url.port)) as (reader, _):
        answer = await rest_of(reader)
    assert b" 403 " in answer.splitlines()[0]
    assert b"headrace keys create" in answer


@pytest.mark.skipif(NGINX is None, reason="nginx is not installed, and no wheel has it")
@pytest.mark.parametrize("more", ["", "proxy_set_header X-Forwarded-For $remote_addr;"])
async def test_the_real_nginx_opens_nothing(
    local_app: headrace.App, tmp_path: Path, more: str
) -> None:
    async with client_of(local_app) as client:
        with nginx(tmp_path, str(client.base_url), more) as url:
            async with httpx.AsyncClient(base_url=url, timeout=30) as outside:

                async def answers() -> bool:
                    try:
                        return (await outside.get("/healthz")).status_code == 200
                    except httpx.TransportError:
                        return False

                await until(answers, "the start of nginx")
                for path in ("/queues", "/jobs", "/metrics", "/openapi.json", "/ui/"):
                    assert (await outside.get(path)).status_code == 403, path
                problem(await outside.post("/queues/default/pause"), 403)
                # With keys it is a proxy like any other.
                key = await a_key(local_app)

                async def is_let_in() -> bool:
                    answer = await outside.get("/queues", headers=bearer(key))
                    return answer.status_code == 200

                await until(is_let_in, "the key to be known")
                problem(await outside.get("/queues"), 401)


@pytest.mark.parametrize(
    "header",
    [
        "Via: 1.1 proxy",
        "X-Forwarded-Host: example.com",
        "X-Forwarded-Proto: https",
        "X-Real-IP: 203.0.113.7",
        "X-Client-IP: 203.0.113.7",
        "CF-Connecting-IP: 203.0.113.7",
        "X-Envoy-External-Address: 203.0.113.7",
        "X-Amzn-Trace-Id: Root=1",
    ],
)
async def test_headers_of_proxies_are_known(local: httpx.AsyncClient, header: str) -> None:
    name, _, value = header.partition(": ")
    problem(await local.get("/queues", headers={name: value}), 403, "forbidden")
