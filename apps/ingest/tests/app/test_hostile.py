"""Hostile input: one clear error each, after one attempt, and what follows is processed."""

from __future__ import annotations

import contextlib
import http.client
import select
from collections.abc import Iterator

import psutil
import pytest
from ingest_support.office import make_docx, make_zip
from ingest_support.pdf import hanging_pdf
from ingest_support.running import Running
from tests.support.servers import free_port

from app.conftest import Stores

MEBIBYTE = 1 << 20
LARGEST = 8 * MEBIBYTE
GIGABYTE = 10**9
MOST_GROWTH = 64 * MEBIBYTE
HEAD = (
    b'--edge\r\nContent-Disposition: form-data; name="files"; filename="zeros.txt"\r\n'
    b"Content-Type: text/plain\r\n\r\n"
)


@pytest.fixture(scope="module")
def running(stores: Stores, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("hostile")
    made = Running(
        folder,
        stores.url("sqlite", folder),
        free_port(),
        ingest_largest_file=str(LARGEST),
        ingest_parse_seconds="5",
    )
    try:
        made.start_server()
        made.start_worker()
        yield made
    finally:
        made.stop()


def bomb() -> bytes:
    """A Word file of some kilobytes whose text is 64 MiB of zeros."""
    entries: dict[str, bytes | str] = {
        "[Content_Types].xml": "<Types/>",
        "word/document.xml": bytes(64 * MEBIBYTE),
    }
    return make_zip(entries)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("bomb.docx", bomb(), "would expand to"),
        ("hangs.pdf", hanging_pdf(), "was not read within 5 s and was given up"),
    ],
)
def test_a_hostile_file_fails_once_and_the_next_is_processed(
    running: Running, name: str, content: bytes, said: str
) -> None:
    (failed,) = running.done((name, content))
    assert (failed["status"], failed["chunks"]) == ("failed", 0)
    assert said in failed["error"]
    assert running.job(failed["document_id"])["attempt"] == 1
    (done,) = running.done((f"after {name}.docx", make_docx(f"Nothing is wrong with {name}.")))
    assert done["status"] == "completed"


def test_a_file_beyond_the_limit_is_named(running: Running) -> None:
    answer = running.post(("large.txt", b"a" * (LARGEST + 1)), ("small.txt", b"b"))
    assert answer.status_code == 413, answer.text
    assert f'"large.txt" has {LARGEST + 1:,} bytes; at most {LARGEST:,}' in answer.json()["detail"]
    listed = running.client.get("/documents", params={"path": "/"}).json()["documents"]
    assert {"large.txt", "small.txt"}.isdisjoint(each["name"] for each in listed)


def test_a_gigabyte_that_is_announced_is_refused_before_it_is_sent(running: Running) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=30)
    try:
        connection.putrequest("POST", "/ingest/documents")
        connection.putheader("Content-Type", "multipart/form-data; boundary=edge")
        connection.putheader("Content-Length", str(GIGABYTE))
        connection.endheaders()
        answer = connection.getresponse()
        assert (answer.status, b"the body has more than" in answer.read()) == (413, True)
    finally:
        connection.close()


def test_a_gigabyte_that_is_streamed_is_refused_at_the_limit_without_memory_for_it(
    running: Running,
) -> None:
    server = psutil.Process(running.processes[0].pid)
    before = largest = server.memory_info().rss
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=60)
    try:
        connection.putrequest("POST", "/ingest/documents")
        connection.putheader("Content-Type", "multipart/form-data; boundary=edge")
        connection.putheader("Transfer-Encoding", "chunked")
        connection.endheaders(b"%x\r\n%s\r\n" % (len(HEAD), HEAD))
        sent, piece = 0, bytes(MEBIBYTE // 4)
        # A server that has answered may close while more is being sent.
        with contextlib.suppress(ConnectionError):
            while sent < GIGABYTE and not _answered(connection):
                connection.send(b"%x\r\n%s\r\n" % (len(piece), piece))
                sent += len(piece)
                largest = max(largest, server.memory_info().rss)
        answer = connection.getresponse()
        assert (answer.status, b"the body has more than" in answer.read()) == (413, True)
    finally:
        connection.close()
    assert sent < GIGABYTE // 2
    assert largest - before < MOST_GROWTH


def _answered(connection: http.client.HTTPConnection) -> bool:
    readable, _, _ = select.select([connection.sock], [], [], 0)
    return bool(readable)
