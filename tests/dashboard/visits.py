"""Visits without a browser: pages as HTML, and forms."""

from __future__ import annotations

import asyncio
import html
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from tests.dashboard.conftest import Site
from tests.dashboard.test_session import client, token
from tests.server.conftest import a_key, bearer


class Visitor:
    """Somebody who looks at pages and sends forms."""

    def __init__(self, http: httpx.AsyncClient, given: str) -> None:
        self.http = http
        self._token = given

    async def get(self, path: str, status: int = 200) -> str:
        """Return a page."""
        found = await self.http.get(f"/ui{path}")
        assert found.status_code == status, found.text
        return found.text

    async def words(self, path: str) -> str:
        """Return what a page says, without its elements."""
        return words(await self.get(path))

    async def sees(self, path: str, text: str) -> str:
        """Look until a page says this, and return it: some of it may be a second old."""
        async with asyncio.timeout(60):
            while text not in words(page := await self.get(path)):
                pass
        return page

    async def send(self, path: str, status: int = 303, **fields: Any) -> str:
        """Send a form. Return the page that follows."""
        form = {"token": self._token, "back": "/trial", **fields}
        found = await self.http.post(f"/ui{path}", data=form)
        assert found.status_code == status, found.text
        return (
            found.text if status != 303 else (await self.http.get(found.headers["location"])).text
        )


def words(page: str) -> str:
    """Return the text of a page, without the style sheet and scripts that are in it."""
    seen = re.sub(r"<(style|script)\b.*?</\1>", " ", page, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", seen)).split())


@asynccontextmanager
async def visitor(site: Site, key: str | None = None) -> AsyncIterator[Visitor]:
    """Visit a site: with a key, or on its own machine if it has no keys."""
    async with client(site) as http:
        if key is not None:
            answer = await http.post("/ui/session", data={"key": key})
            assert answer.status_code == 303
        yield Visitor(http, await token(http))


async def audited(site: Site) -> list[tuple[str, str, str]]:
    """Return what was written to the audit log: who, what, and to what."""
    async with client(site) as http:
        answer = await http.get("/audit", headers=bearer(await a_key(site.app)))
    return [(each["who"], each["action"], each["target"]) for each in answer.json()["entries"]]
