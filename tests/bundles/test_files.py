"""A route of a bundle sends a stored file as the server's own routes do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import headrace
import headrace.bundles
from tests.bundles.conftest import client_of

CONTENT = bytes(range(256)) * 40


def a_bundle(found: dict[str, headrace.Artifact]) -> headrace.Bundle:
    def routes(setup: Any) -> headrace.bundles.Routes:
        routes = headrace.bundles.Routes()

        async def send(name: str) -> headrace.bundles.File:
            return headrace.bundles.File(found[name])

        for method in ("GET", "HEAD"):
            routes.add(method, "/files/{name}", send, scope="read")
        return routes

    return headrace.Bundle("sender", summary="Sends files", routes=routes)


async def test_a_file_is_sent_whole_in_part_or_not_at_all(tmp_path: Path) -> None:
    found: dict[str, headrace.Artifact] = {}
    app = headrace.App(f"sqlite:///{tmp_path}/jobs.db", artifacts=str(tmp_path / "files"))
    app.load_bundle(a_bundle(found))
    async with app:
        found["a"] = await app.artifacts.put("소리.mp3", CONTENT, media_type="audio/mpeg")
        async with client_of(app) as client:
            whole = await client.get("/sender/files/a")
            assert (whole.status_code, whole.content) == (200, CONTENT)
            assert whole.headers["etag"] == f'"{found["a"].sha256}"'
            assert "attachment" in whole.headers["content-disposition"]
            part = await client.get("/sender/files/a", headers={"Range": "bytes=100-199"})
            assert (part.status_code, part.content) == (206, CONTENT[100:200])
            assert part.headers["content-range"] == f"bytes 100-199/{len(CONTENT)}"
            last = await client.get("/sender/files/a", headers={"Range": "bytes=-7"})
            assert last.content == CONTENT[-7:]
            beyond = await client.get("/sender/files/a", headers={"Range": "bytes=99999-"})
            assert beyond.status_code == 416
            known = {"If-None-Match": whole.headers["etag"]}
            assert (await client.get("/sender/files/a", headers=known)).status_code == 304
            head = await client.head("/sender/files/a")
            assert (head.headers["content-length"], head.content) == (str(len(CONTENT)), b"")
            await app.artifacts.remove(found["a"].path)
            gone = await client.get("/sender/files/a")
            assert (gone.status_code, gone.json()["type"][-18:]) == (404, "artifact-not-found")
