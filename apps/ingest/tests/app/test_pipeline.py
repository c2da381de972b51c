"""Documents are processed once and whole, and nothing that was masked is left anywhere."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from ingest_support.office import make_docx
from ingest_support.pdf import text_pdf
from ingest_support.running import Running, files_with, wait_for
from tests.support.servers import free_port

from app.conftest import Stores

LEAVE = "근로자는 1년에 15일의 유급 휴가를 받는다. 신청은 사흘 전까지 부서장에게 한다."
REFUND = "Customers receive a full refund within thirty days. Keep the receipt of your order."
SECRETS = {
    "phone": "010-9713-2468",
    "email": "quokka.secret@example.com",
    "resident_number": "900101-1234568",
    "person": "김철수",
}
PERSONAL = (
    f"담당자: {SECRETS['person']} 과장, 전화 {SECRETS['phone']}, 메일 {SECRETS['email']}, "
    f"주민등록번호 {SECRETS['resident_number']}. 사무실은 오후 여섯 시에 닫는다."
)


def test_a_document_is_completed_and_found(running: Running) -> None:
    accepted = running.add(
        ("휴가.docx", make_docx(LEAVE)), ("refund.pdf", text_pdf(REFUND)), path="/hr/leave"
    )
    assert [each["status"] for each in accepted] == ["processing", "processing"]
    leave, refund = (running.finished(each["document_id"]) for each in accepted)
    assert (leave["status"], leave["stage"], leave["progress"]) == ("completed", "completed", 100)
    assert (leave["name"], leave["path"], leave["chunks"]) == ("휴가.docx", "/hr/leave", 1)
    assert leave["job_id"] == leave["document_id"]
    hits = running.search("How many days of vacation do workers have?", path="/hr")
    assert hits[0]["document_id"] == leave["document_id"]
    assert "유급 휴가" in hits[0]["text"]
    assert running.search("환불은 언제까지 받을 수 있나요")[0]["name"] == refund["name"]
    assert running.search("휴가", path="/hrx") == []
    # A document is stored before its job is told of as completed.
    wait_for(
        lambda: running.job(leave["document_id"])["status"] == "completed",
        "the job",
        lambda: str(running.job(leave["document_id"])),
    )
    job = running.job(leave["document_id"])
    assert job["attempt"] == 1
    assert job["result"]["chunks"] == 1


def test_what_is_masked_is_nowhere(running: Running, stores: Stores, engine: str) -> None:
    (done,) = running.done(("담당자.txt", PERSONAL.encode()))
    assert done["personal_data"] == dict.fromkeys(SECRETS, 1)
    (hit,) = [each for each in running.search("담당자 전화") if each["name"] == "담당자.txt"]
    for mark in ("[PHONE]", "[EMAIL]", "[RESIDENT_NUMBER]", "[PERSON]"):
        assert mark in hit["text"]
    folders = [running.folder]
    if engine == "postgres":
        assert stores.server is not None
        folders.append(stores.server.data)
    # The search itself works: what is not masked is found in the tables.
    assert files_with("여섯 시에 닫는다".encode(), folders)
    for value in SECRETS.values():
        assert files_with(value.encode(), folders) == []
    original = running.client.get(f"/documents/{done['document_id']}/original")
    assert original.content == PERSONAL.encode()


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("empty.txt", b"", "is empty"),
        ("junk.pdf", bytes(range(256)) * 8, "of no known type"),
        ("cut.pdf", text_pdf(REFUND)[:200], "cut.pdf"),
    ],
)
def test_what_cannot_be_read_fails_after_one_attempt(
    running: Running, name: str, content: bytes, said: str
) -> None:
    (failed,) = running.done((name, content))
    assert (failed["status"], failed["chunks"]) == ("failed", 0)
    assert said in failed["error"]
    job = running.job(failed["document_id"])
    assert (job["status"], job["attempt"]) == ("failed", 1)
    listed = running.client.get("/documents", params={"status": "failed"}).json()["documents"]
    assert failed["document_id"] in [each["document_id"] for each in listed]


def test_the_same_file_is_not_done_twice_and_a_new_version_replaces_the_old(
    running: Running,
) -> None:
    first = ("offices.txt", b"The office is in Lisbon.")
    (before,) = running.done(first, path="/it")
    (again,) = running.add(first, path="/it")
    assert (again["document_id"], again["new"]) == (before["document_id"], False)
    (elsewhere,) = running.add(first, path="/it/old")
    assert elsewhere["document_id"] != before["document_id"]
    (after,) = running.done(("offices.txt", b"The office is in Porto."), path="/it")
    assert after["version"] == 2
    assert running.get(before["document_id"])["status"] == "replaced"
    at = {each["document_id"] for each in running.search("Where is the office?", path="/it")}
    assert before["document_id"] not in at
    assert after["document_id"] in at
    wait_for(
        lambda: running.client.get(f"/documents/{before['document_id']}/original").is_error,
        "the end of the old original",
        lambda: running.log("worker")[-2000:],
    )


def test_a_deleted_document_is_gone(running: Running) -> None:
    (done,) = running.done(("parrots.txt", b"Parrots can live for eighty years."))
    document = f"/documents/{done['document_id']}"
    assert running.search("How old do parrots get?")[0]["name"] == "parrots.txt"
    assert running.client.delete(document).status_code == 204
    assert running.client.get(document).status_code == 404
    assert running.client.get(f"{document}/original").status_code == 404
    assert running.client.delete(document).status_code == 404
    assert all(hit["name"] != "parrots.txt" for hit in running.search("How old do parrots get?"))
    assert list((running.folder / "artifacts").rglob(f"*{done['document_id']}*/*/*")) == []
    (anew,) = running.done(("parrots.txt", b"Parrots can live for eighty years."))
    assert anew["status"] == "completed"


def test_a_document_can_be_indexed_again(running: Running) -> None:
    (done,) = running.done(("bees.txt", b"Bees dance to show where flowers are."))
    document_id = done["document_id"]
    answer = running.client.post(f"/documents/{document_id}/reindex")
    assert answer.status_code == 202, answer.text
    after = running.finished(document_id)
    assert (after["status"], after["chunks"]) == ("completed", 1)
    assert after["updated_at"] > done["updated_at"]
    assert running.search("dance of bees")[0]["document_id"] == document_id


def test_a_job_that_runs_again_after_all_was_stored_does_nothing(running: Running) -> None:
    """As after a worker that was killed before it could say that it was done."""
    (done,) = running.done(("owls.txt", b"Owls hunt at night."))
    document_id = done["document_id"]
    wait_for(
        lambda: running.job(document_id)["status"] == "completed",
        "the job",
        lambda: str(running.job(document_id)),
    )
    first = running.job(document_id)
    assert httpx.post(f"{running.address}/jobs/{document_id}/retry").status_code == 200
    wait_for(
        lambda: (
            (now := running.job(document_id))["status"] == "completed"
            and now["completed_at"] > first["completed_at"]
        ),
        "the second run",
        lambda: str(running.job(document_id)),
    )
    assert running.job(document_id)["result"]["chunks"] == 1
    assert running.get(document_id) == done


def test_a_cancelled_job_is_a_failed_document(engine: str, stores: Stores, tmp_path: Path) -> None:
    alone = Running(tmp_path, stores.url(engine, tmp_path), free_port())
    try:
        alone.start_server()
        (accepted,) = alone.add(("a.txt", b"Nobody works on this."))
        document_id = accepted["document_id"]
        shown = alone.get(document_id)
        assert (shown["status"], shown["progress"], shown["error"]) == ("processing", 0, None)
        (same,) = alone.add(("a.txt", b"Nobody works on this."))
        assert (same["document_id"], same["new"]) == (document_id, False)
        cancelled = httpx.post(f"{alone.address}/jobs/{document_id}/cancel")
        assert cancelled.status_code == 200, cancelled.text
        listed = alone.client.get("/documents", params={"status": "failed"}).json()["documents"]
        assert [each["document_id"] for each in listed] == [document_id]
        assert "cancelled" in alone.get(document_id)["error"]
        (anew,) = alone.add(("a.txt", b"Nobody works on this."))
        assert anew["new"]
    finally:
        alone.stop()
