"""Every route with every kind of key: scope, bound to a queue, bound to a user, or both."""

from __future__ import annotations

import itertools
from collections import Counter

import headrace
from headrace.admin.keys import SCOPES
from tests.server.conftest import a_key, bearer, client_of
from tests.server.test_guard import LOCAL, OPEN, ROUTES, ask

# As docs/how-to/api-keys.md says: what concerns all queues.
OF_NO_QUEUE = (
    "/keys",
    "/audit",
    "/schedules",
    "/dead-letters",
    "/dispatchers",
    "/alert-rules",
    "/alerts",
    "/destinations",
    "/event-types",
    "/artifacts/kept",
)
# What concerns all users, besides all changes that need the scope `admin`.
OF_ALL_USERS = {
    ("POST", "/jobs/bulk"),
    ("DELETE", "/bulk/{bulk_id}"),
    ("POST", "/bulk/{bulk_id}/resume"),
}
BOUNDS: tuple[tuple[list[str], str | None], ...] = (
    ([], None),
    (["x"], None),
    ([], "ada"),
    (["x"], "ada"),
)


def allowed(route: tuple[str, str, str], scope: str, *, queues: bool, user: bool) -> bool:
    """Whether the documentation lets such a key use a route."""
    method, path, access = route
    if path in OPEN:
        return True
    needed = "read" if access == "local" else access
    if SCOPES.index(scope) < SCOPES.index(needed):
        return False
    if queues and (path.startswith(OF_NO_QUEUE) or path == "/metrics"):
        return False
    changes_all = (access == "admin" and method != "GET") or (method, path) in OF_ALL_USERS
    return not (user and changes_all)


async def test_every_route_with_every_kind_of_key(local_app: headrace.App) -> None:
    counted: Counter[str] = Counter()
    async with client_of(local_app) as client:
        for scope, (queues, user) in itertools.product(SCOPES, BOUNDS):
            key = await a_key(local_app, scope, queues=queues, user=user, rate=100_000)
            for method, path, access in ROUTES:
                if path == "/events":
                    continue  # it would never end
                answer = await ask(client, method, path, headers=bearer(key))
                route = (method, path, access)
                wanted = allowed(route, scope, queues=bool(queues), user=user is not None)
                got = answer.status_code not in (401, 403)
                told = (method, path, scope, queues, user, answer.text)
                assert got == wanted, told
                assert answer.status_code != 401, told
                assert answer.status_code < 500, told
                counted["open" if wanted else "closed"] += 1
    pairs = (len(ROUTES) - 1) * len(SCOPES) * len(BOUNDS)
    assert counted.total() == pairs >= 800
    assert counted["closed"] > 200
    assert {path for _, path, _ in ROUTES} >= OPEN | LOCAL
