"""The routes refuse what cannot be meant, and say why."""

from __future__ import annotations

import pytest
from ingest_support.running import Running


@pytest.mark.parametrize("name", ["../../etc/passwd", "..\\x.txt", "..", "...", "a/../b.txt"])
def test_a_hostile_name_is_refused(running: Running, name: str) -> None:
    before = running.client.get("/documents").json()["documents"]
    answer = running.post((name, b"text"), ("good.txt", b"Not stored either."))
    assert answer.status_code == 422, answer.text
    assert "name" in answer.json()["detail"]
    assert running.client.get("/documents").json()["documents"] == before


def test_a_name_that_is_read_otherwise_than_written_is_refused(running: Running) -> None:
    before = running.client.get("/documents").json()["documents"]
    answer = running.post(("good.txt", b"Not stored either."), ("invoice\u202efdp.exe", b"text"))
    assert answer.status_code == 422, answer.text
    problem = answer.json()
    assert problem["detail"] == (
        'The file name "invoice\\u202efdp.exe" has the mark U+202E, which turns the direction of '
        "writing; rename the file without it."
    )
    assert (problem["field"], problem["value"]) == ("files", '"invoice\\u202efdp.exe"')
    assert problem["remedy"] == "rename the file without it."
    assert running.client.get("/documents").json()["documents"] == before


def test_a_name_is_shown_without_hidden_marks_and_folders(running: Running) -> None:
    (accepted,) = running.add(("folder/fdp\u200b.txt", b"This is a text about names."))
    assert accepted["name"] == "fdp.txt"
    original = f"/documents/{accepted['document_id']}/original"
    assert running.finished(accepted["document_id"])["status"] == "completed"
    answer = running.client.get(original)
    assert answer.headers["content-disposition"].startswith("attachment;")
    assert answer.headers["content-security-policy"].startswith("sandbox")


@pytest.mark.parametrize(
    ("path", "metadata"),
    [("hr", "{}"), ("/a//b", "{}"), ("/..", "{}"), ("/", "[]"), ("/", "{"), ("/", '{"a": NaN}')],
)
def test_a_wrong_form_is_refused(running: Running, path: str, metadata: str) -> None:
    assert running.post(("a.txt", b"a"), path=path, metadata=metadata).status_code == 422


@pytest.mark.parametrize(
    "query",
    [
        "/documents?status=done",
        "/documents?limit=0",
        "/documents?limit=501",
        "/documents?cursor=x",
        "/documents?path=hr",
        "/search?q=",
        "/search?q=a&k=0",
        "/search?q=a&k=1000",
        "/search?q=a&path=hr",
        "/search",
    ],
)
def test_a_wrong_question_is_refused(running: Running, query: str) -> None:
    assert running.client.get(query).status_code == 422


@pytest.mark.parametrize("document_id", ["x", "%00", "01a1e876-29f4-7421-95c3-62c492c6cf04"])
def test_an_unknown_document_is_not_found(running: Running, document_id: str) -> None:
    for method, rest in (("GET", ""), ("GET", "/original"), ("DELETE", ""), ("POST", "/reindex")):
        answer = running.client.request(method, f"/documents/{document_id}{rest}")
        assert answer.status_code == 404, answer.text


def test_documents_are_listed_in_pages(running: Running) -> None:
    files = [(f"page {number}.txt", f"This is page {number}.".encode()) for number in range(3)]
    accepted = running.add(*files, path="/pages", metadata='{"year": 2026}')
    first = running.client.get("/documents", params={"path": "/pages", "limit": 2}).json()
    rest = running.client.get(
        "/documents", params={"path": "/pages", "limit": 2, "cursor": first["next"]}
    ).json()
    found = [*first["documents"], *rest["documents"]]
    assert [each["document_id"] for each in found] == [
        each["document_id"] for each in reversed(accepted)
    ]
    assert rest["next"] is None
    assert found[0]["metadata"] == {"year": 2026}
    assert running.client.get("/documents?path=/page").json()["documents"] == []
    info = running.client.get("/info").json()
    assert "/pages" in info["paths"]
    assert info["model"] == "use-multilingual-3"


def test_files_of_one_request_count_in_their_order_and_the_same_one_is_done_once(
    running: Running,
) -> None:
    files = [("tea.txt", f"Tea is served at {hour}.".encode()) for hour in ("two", "three", "four")]
    accepted = running.add(*files, files[0], path="/tea")
    assert accepted[3]["document_id"] == accepted[0]["document_id"]
    assert sorted(each["new"] for each in accepted) == [False, True, True, True]
    documents = [each["document_id"] for each in accepted[:3]]
    for document in documents:
        running.finished(document)
    # Only now: one that was completed first is replaced when a later one has ended.
    statuses = [running.finished(document)["status"] for document in documents]
    assert statuses == ["replaced", "replaced", "completed"]
    (hit,) = running.search("When is tea served?", path="/tea")
    assert "four" in hit["text"]


def test_the_page_is_served(running: Running) -> None:
    page = running.client.get("/")
    assert page.status_code == 200
    assert "<title>Documents" in page.text
    assert running.client.get("/ingest.js").status_code == 200
