"""The command line adds, finds, indexes again and removes documents."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ingest_support.running import Running


# By a server it is the same whatever the store.
@pytest.mark.parametrize(
    ("engine", "remote"),
    [("sqlite", False), ("sqlite", True), ("postgres", False)],
    ids=["sqlite", "server", "postgres"],
    indirect=["engine"],
    scope="module",
)
def test_a_folder_is_added_found_and_removed(
    running: Running, tmp_path: Path, *, remote: bool
) -> None:
    def run(*arguments: str, code: int = 0) -> str:
        return running.run(*arguments, code=code, remote=remote)

    top = "/server" if remote else "/store"
    folder = tmp_path / "papers"
    (folder / "rules").mkdir(parents=True)
    (folder / "rules" / "dogs.txt").write_text("Dogs are welcome in the office on Fridays.")
    (folder / "empty.txt").write_text("")
    (folder / ".hidden").write_text("not added")
    (folder / "invoice\u202efdp.exe").write_text("refused")
    added = json.loads(run("add", str(folder), "--path", top, "--json", code=1))
    by_name = {each["name"]: each for each in added["documents"]}
    assert set(by_name) == {"dogs.txt", "empty.txt"}
    dogs = by_name["dogs.txt"]
    assert (dogs["path"], dogs["status"]) == (f"{top}/rules", "completed")
    assert by_name["empty.txt"]["status"] == "failed"
    (refused,) = added["refused"]
    assert refused["file"].endswith("fdp.exe")
    assert "U+202E, which turns the direction of writing; rename the file" in refused["error"]
    found = json.loads(run("search", "Can I bring my dog?", "--path", top, "--json"))
    assert found["hits"][0]["document_id"] == dogs["document_id"]
    listed = run("list", "--path", f"{top}/rules")
    assert f"{top}/rules/dogs.txt  completed" in listed
    assert "completed" in run("show", dogs["document_id"])
    again = json.loads(run("reindex", "--path", top, "--json"))
    assert [each["status"] for each in again["documents"]] == ["completed"]
    assert "1 removed" in run("remove", dogs["document_id"])
    run("show", dogs["document_id"], code=2)
    assert running.client.get(f"/documents/{dogs['document_id']}").status_code == 404
    assert "alembic" not in running.log("worker")
