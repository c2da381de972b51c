"""The command line adds, finds, indexes again and removes documents."""

from __future__ import annotations

import json

from ingest_support.running import Running


def test_a_folder_is_added_found_and_removed(running: Running) -> None:
    folder = running.folder / "papers"
    (folder / "rules").mkdir(parents=True)
    (folder / "rules" / "dogs.txt").write_text("Dogs are welcome in the office on Fridays.")
    (folder / "empty.txt").write_text("")
    (folder / ".hidden").write_text("not added")
    added = json.loads(running.run("add", str(folder), "--path", "/cli", "--json", code=1))
    by_name = {each["name"]: each for each in added["documents"]}
    assert set(by_name) == {"dogs.txt", "empty.txt"}
    dogs = by_name["dogs.txt"]
    assert (dogs["path"], dogs["status"]) == ("/cli/rules", "completed")
    assert by_name["empty.txt"]["status"] == "failed"
    found = json.loads(running.run("search", "Can I bring my dog?", "--path", "/cli", "--json"))
    assert found["hits"][0]["document_id"] == dogs["document_id"]
    listed = running.run("list", "--path", "/cli/rules")
    assert "/cli/rules/dogs.txt  completed" in listed
    assert "completed" in running.run("show", dogs["document_id"])
    again = json.loads(running.run("reindex", "--path", "/cli", "--json"))
    assert [each["status"] for each in again["documents"]] == ["completed"]
    assert "1 removed" in running.run("remove", dogs["document_id"])
    running.run("show", dogs["document_id"], code=2)
    assert running.client.get(f"/documents/{dogs['document_id']}").status_code == 404
