"""Routes and pages of bundles: guarded, limited, audited, described."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

import headrace
import headrace.bundles
import headrace.server
from headrace.admin.keys import create_key
from headrace.client.errors import NotFound
from headrace.server.http import problems
from headrace.server.listen import listening
from tests.bundles.conftest import client_of

pytestmark = pytest.mark.usefixtures("forget")


def bundle_with(make: Any, **more: Any) -> headrace.Bundle:
    return headrace.Bundle("demo", summary="A demo", routes=make, **more)


def routes_of(method: str, path: str, **options: Any) -> Any:
    async def endpoint() -> int:
        return 1

    def make(setup: headrace.bundles.Setup) -> headrace.bundles.Routes:
        routes = headrace.bundles.Routes()
        routes.add(method, path, endpoint, **options)
        return routes

    return make


async def key(app: headrace.App, scope: Any = "admin", **more: Any) -> str:
    _, secret = await create_key(app, name=scope, scope=scope, **more)
    return secret


@pytest.mark.parametrize(
    ("path", "options", "said"),
    [
        ("/x", {}, r"GET /demo/x has no scope"),
        ("/x", {"scope": "open"}, "unknown scope 'open'"),
        ("x", {"scope": "read"}, "outside of /demo/"),
        ("/../jobs", {"scope": "read"}, "outside of /demo/"),
        ("//elsewhere", {"scope": "read"}, "outside of /demo/"),
        ("/x", {"scope": "read", "nonsense": 1}, "GET /demo/x"),
    ],
)
def test_a_wrong_route_does_not_start(path: str, options: dict[str, Any], said: str) -> None:
    app = headrace.App("sqlite:///:memory:")
    app.load_bundle(bundle_with(routes_of("GET", path, **options)))
    with pytest.raises(headrace.InvalidSetting, match=said):
        headrace.server.create(app)


def test_a_parameter_may_stand_in_the_middle_of_a_path() -> None:
    app = headrace.App("sqlite:///:memory:")
    app.load_bundle(bundle_with(routes_of("GET", "/x/{x_id}/part", scope="read")))
    assert "/demo/x/{x_id}/part" in headrace.server.create(app).openapi()["paths"]


async def test_a_wrong_route_of_a_named_bundle_takes_only_that_out_of_service(
    shelf: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = shelf / "routes.py"
    file.write_text(file.read_text().replace('"/books", scope="read"', '"/books"'))
    async with headrace.App(f"sqlite:///{tmp_path}/jobs.db", bundles=["shelf"]) as app:
        async with client_of(app) as client:
            assert (await client.get("/shelf/books")).status_code == 404
            assert (await client.get("/jobs")).status_code == 200
        assert "GET /shelf/books has no scope" in caplog.text
        assert "shelf.add" not in app.tasks


async def test_a_route_of_a_bundle_does_its_work(app: headrace.App) -> None:
    async with client_of(app) as client:
        added = await client.post("/shelf/books", json={"title": "Emma"})
        assert added.status_code == 202, added.text
        assert added.json()["caller"] == "local"
        await headrace.JobOrchestrator(app).run_until_idle()
        listed = (await client.get("/shelf/books")).json()
        assert [book["title"] for book in listed] == ["Emma"]
        assert [book["password"] for book in listed] == ["[redacted]"]
        assert listed == (await client.get("/shelf/books?title=Emma")).json()
        assert (await client.get("/shelf/books?titel=Emma")).status_code == 422
        missing = await client.get("/shelf/books/7")
        assert missing.status_code == 404
        assert missing.json()["type"] == f"{problems.PREFIX}book-not-found"
        assert (await client.delete("/shelf/books/7")).status_code == 204


@pytest.mark.parametrize(
    ("body", "status"), [({"title": 3}, 422), ({"titel": "x"}, 422), ({}, 422), (b"{", 400)]
)
async def test_a_bad_body_is_refused(app: headrace.App, body: Any, status: int) -> None:
    sent = {"content": body} if isinstance(body, bytes) else {"json": body}
    headers = {"content-type": "application/json"}
    async with client_of(app) as client:
        answer = await client.post("/shelf/books", headers=headers, **sent)
        assert answer.status_code == status
        assert (await app.list()).jobs == []


SCOPES = [
    ("GET", "/shelf/books", "read"),
    ("POST", "/shelf/books", "write"),
    ("POST", "/shelf/scans", "write"),
    ("DELETE", "/shelf/books/7", "admin"),
    ("GET", "/shelf/", "read"),
    ("GET", "/shelf/page.js", "read"),
    ("GET", "/shelf", "read"),
]


@pytest.mark.parametrize(("method", "path", "scope"), SCOPES)
async def test_a_route_needs_a_key_with_its_scope(
    app: headrace.App, method: str, path: str, scope: str
) -> None:
    order = ["read", "write", "admin"]
    secrets = {each: await key(app, each) for each in order}
    async with client_of(app) as client:
        assert (await client.request(method, path)).status_code == 401
        for each, secret in secrets.items():
            headers = {"Authorization": f"Bearer {secret}"}
            answer = await client.request(method, path, headers=headers)
            enough = order.index(each) >= order.index(scope)
            assert (answer.status_code == 403) is not enough, answer.text


async def test_a_key_for_some_queues_is_held_to_them(app: headrace.App) -> None:
    await key(app)
    others, ours = await key(app, queues=["mail"]), await key(app, queues=["shelf"])
    async with client_of(app, others) as client:
        assert (await client.get("/shelf/books")).status_code == 403
    async with client_of(app, ours) as client:
        assert (await client.get("/shelf/books")).status_code == 200


async def test_the_user_of_a_key_is_known(app: headrace.App) -> None:
    async with client_of(app, await key(app, user="ada")) as client:
        added = await client.post("/shelf/books", json={"title": "Emma"})
        assert added.json()["user"] == "ada"


async def test_every_change_is_written_to_the_audit_log(app: headrace.App) -> None:
    async with client_of(app, await key(app)) as client:
        job_id = (await client.post("/shelf/books", json={"title": "Emma"})).json()["job_id"]
        await client.post("/shelf/books", json={"title": 3})
        await client.delete("/shelf/books/7")
        await client.post("/shelf/scans", files={"files": ("a", b"abc")})
        await client.post("/shelf/questions", json={"title": "why"})
        await client.get("/shelf/books")
        found = (await client.get("/audit")).json()["entries"]
    seen = {each["action"]: each for each in found if each["action"].startswith("shelf.")}
    assert set(seen) == {"shelf.book.add", "shelf.remove", "shelf.scan"}
    assert seen["shelf.book.add"]["target"] == job_id
    assert seen["shelf.book.add"]["detail"] == {"title": "Emma"}
    assert seen["shelf.remove"]["target"] == "7"
    assert seen["shelf.remove"]["who"] == "admin"


async def test_files_are_taken_up_to_a_limit(app: headrace.App) -> None:
    content = bytes(range(256)) * 12_000
    async with client_of(app) as client:
        files = [("files", ("책.bin", content)), ("files", ("b", b""))]
        answer = await client.post("/shelf/scans", files=files)
        assert answer.json()["책.bin"] == [len(content), hashlib.sha256(content).hexdigest()]

        async def endless() -> Any:
            yield b'--x\r\nContent-Disposition: form-data; name="files"; filename="a"\r\n\r\n'
            for _ in range(40):
                yield bytes(1_048_576)

        headers = {"content-type": "multipart/form-data; boundary=x"}
        too_much = await client.post("/shelf/scans", content=endless(), headers=headers)
        assert too_much.status_code == 413, too_much.text


async def test_a_json_body_is_limited(app: headrace.App) -> None:
    async with client_of(app) as client:
        answer = await client.post("/shelf/books", json={"title": "x" * 2_000_000})
        assert answer.status_code == 413


async def test_routes_are_in_the_api_document(app: headrace.App) -> None:
    async with client_of(app) as client:
        document = (await client.get("/openapi.json")).json()
    add = document["paths"]["/shelf/books"]["post"]
    assert add["x-access"] == "write"
    assert add["tags"] == ["shelf"]
    reference = add["requestBody"]["content"]["application/json"]["schema"]["$ref"]
    assert document["components"]["schemas"][reference.rpartition("/")[2]]["required"] == ["title"]
    listed = document["paths"]["/shelf/books"]["get"]["responses"]["200"]
    items = listed["content"]["application/json"]["schema"]["items"]["$ref"]
    assert items == "#/components/schemas/shelf.Book"
    assert items.rpartition("/")[2] in document["components"]["schemas"]
    text = str(document["paths"])
    for path in [each for each in text.split("'") if each.startswith("#/components/schemas/")]:
        assert path.rpartition("/")[2] in document["components"]["schemas"], path


async def test_the_page_is_served_with_strict_headers(app: headrace.App) -> None:
    async with client_of(app) as client:
        page = await client.get("/shelf/")
        assert page.status_code == 200
        assert page.headers["content-type"].startswith("text/html")
        policy = page.headers["content-security-policy"]
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert page.headers["x-content-type-options"] == "nosniff"
        script = await client.get("/shelf/page.js")
        assert "javascript" in script.headers["content-type"]
        begin = await client.get("/shelf")
        assert (begin.status_code, begin.headers["location"]) == (307, "/shelf/")
        assert (await client.head("/shelf/")).status_code == 200


async def test_every_page_has_what_asks_the_server(app: headrace.App, shelf: Path) -> None:
    async with client_of(app) as client:
        shared = await client.get("/shelf/headrace.js")
        assert shared.status_code == 200
        assert "javascript" in shared.headers["content-type"]
        assert "script-src 'self'" in shared.headers["content-security-policy"]
        assert "export async function ask" in shared.text
        (shelf / "page" / "headrace.js").write_text("// its own")
        assert (await client.get("/shelf/headrace.js")).text == "// its own"


@pytest.mark.parametrize(
    "path",
    ["missing.js", "../bundle.py", "..%2fbundle.py", "%2e%2e/bundle.py", "%2fetc/passwd", ".git/x",
     "link.txt", "secret.py", "a%00b", "__init__.py"],
)  # fmt: skip
async def test_the_page_serves_nothing_else(app: headrace.App, shelf: Path, path: str) -> None:
    (shelf / "page" / "link.txt").symlink_to(shelf / "bundle.py")
    (shelf / "page" / "secret.py").write_text("")
    async with client_of(app) as client:
        assert (await client.get(f"/shelf/{path}")).status_code == 404


def test_a_page_without_an_index_does_not_start(tmp_path: Path) -> None:
    app = headrace.App("sqlite:///:memory:")
    page = headrace.bundles.Page(str(tmp_path), title="Nothing")
    app.load_bundle(headrace.Bundle("demo", summary="", page=page))
    with pytest.raises(headrace.InvalidSetting, match=r"has no index\.html"):
        headrace.server.create(app)


async def test_a_client_calls_the_routes_of_a_bundle(app: headrace.App) -> None:
    async with (
        listening(app, host="127.0.0.1", port=0) as url,
        headrace.Client(url) as client,
    ):
        begun = await client.call("POST", "/shelf/books", {"title": "Emma"})
        await headrace.JobOrchestrator(app).run_until_idle()
        found = await client.call("GET", "/shelf/books", params={"title": "Emma", "a": None})
        assert [each["title"] for each in found] == ["Emma"]
        assert found[0]["book_id"] == begun["job_id"]
        assert await client.call("GET", "/shelf/books", params={"title": "x"}, type=list[str]) == []
        with pytest.raises(NotFound, match="there is no book 7"):
            await client.call("GET", "/shelf/books/7")
        with pytest.raises(headrace.InvalidInput, match="titel"):
            await client.call("POST", "/shelf/books", {"titel": "Emma"})
