"""Jobs in Redis, tables in PostgreSQL and files in S3: the same pipeline, and no secret in any."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from app.test_pipeline import PERSONAL, REFUND, SECRETS
from ingest_support.pdf import text_pdf
from ingest_support.running import Running, files_with, wait_for
from tests.support.servers import free_port

from app.conftest import Stores

NAME = "담당자.txt"


@pytest.fixture(scope="module")
def running(stores: Stores, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("ingest-redis")
    bucket = stores.bucket()
    made = Running(
        folder,
        stores.url("redis", folder),
        free_port(),
        artifacts=bucket.artifacts("ingest"),
        ingest_url=stores.url("postgres", folder),
        # There is no folder that server and worker share.
        ingest_key="bm90IGEgc2VjcmV0LCBidXQgMzIgYnl0ZXMgbG9uZy4=",
    )
    made.settings |= bucket.environment()
    try:
        made.start_server()
        made.start_worker()
        yield made
    finally:
        made.stop()


def test_a_document_goes_through_redis_s3_and_postgres(running: Running) -> None:
    content = text_pdf(REFUND)
    (done,) = running.done(("refund.pdf", content), path="/shop")
    assert (done["status"], done["progress"], done["chunks"]) == ("completed", 100, 1)
    assert running.search("When do I get my money back?")[0]["document_id"] == done["document_id"]
    document = f"/documents/{done['document_id']}"
    assert running.client.get(f"{document}/original").content == content
    assert not (running.folder / "artifacts").exists()
    assert list(running.folder.glob("*.db")) == []
    assert running.client.post(f"{document}/reindex").status_code == 202
    assert running.finished(done["document_id"])["status"] == "completed"
    assert running.client.delete(document).status_code == 204
    assert running.client.get(f"{document}/original").status_code == 404
    assert all(hit["name"] != "refund.pdf" for hit in running.search("money back"))


def test_what_is_masked_is_in_no_file_of_redis_s3_and_postgres(
    running: Running, stores: Stores
) -> None:
    (done,) = running.done((NAME, PERSONAL.encode()))
    assert done["personal_data"] == dict.fromkeys(SECRETS, 1)
    assert stores.redis is not None
    assert stores.server is not None
    assert stores.files is not None
    with redis.Redis.from_url(stores.redis.url) as client:
        # Packed, nothing would be found.
        client.config_set("rdbcompression", "no")
        client.save()
    data = stores.redis.folder
    wait_for(
        lambda: bool(files_with(NAME.encode(), [data / "appendonlydir"])),
        "the name in the log of Redis",
        lambda: str(sorted(data.rglob("*"))),
    )
    # The search itself works: what may be there is found.
    assert NAME.encode() in (data / "dump.rdb").read_bytes()
    assert files_with("여섯 시에 닫는다".encode(), [stores.server.data])
    folders: list[Path] = [running.folder, data, stores.server.data, stores.files.folder]
    for value in SECRETS.values():
        assert files_with(value.encode(), folders) == []
    original = running.client.get(f"/documents/{done['document_id']}/original")
    assert original.content == PERSONAL.encode()
