"""The pages of a run in the lake, layer bronze. A page that is there is not fetched again."""

from __future__ import annotations

from collections.abc import AsyncIterator

from headrace import Artifact, Context
from headrace_spots.crawling.pages import Fetched

LAYER = "bronze"
PAGES = "pages/"
ROBOTS = "robots/"
# Of the headers only these are worth keeping.
_HEADERS = ("content-type", "location", "last-modified")
LONGEST_HEADER = 1500


class KeptPages:
    """The answers that earlier attempts and this one have kept, in the order in which they came."""

    def __init__(self, ctx: Context, files: dict[str, Artifact]) -> None:
        self._ctx = ctx
        self._files = files

    @classmethod
    async def of(cls, ctx: Context) -> KeptPages:
        """Return what is there."""
        found = [each for each in await ctx.artifacts.list() if each.layer == LAYER]
        found.sort(key=lambda each: each.name)
        return cls(ctx, {each.metadata["url"]: each for each in found if "url" in each.metadata})

    def __len__(self) -> int:
        return len(self._files)

    def __contains__(self, url: str) -> bool:
        return url in self._files

    async def get(self, url: str) -> Fetched | None:
        """Return a kept answer; None if there is none."""
        file = self._files.get(url)
        return None if file is None else await self._read(file)

    async def put(self, fetched: Fetched, *, folder: str = PAGES) -> None:
        """Keep an answer. When this returns, it is safe."""
        name = f"{folder}{len(self._files) + 1:05d}.{'txt' if folder == ROBOTS else 'html'}"
        headers = {each: fetched.headers[each] for each in _HEADERS if each in fetched.headers}
        metadata = {each: value[:LONGEST_HEADER] for each, value in headers.items()}
        metadata |= {"url": fetched.url, "status": str(fetched.status)}
        path = await self._ctx.artifacts.put(
            name,
            fetched.content,
            layer=LAYER,
            media_type="text/plain" if folder == ROBOTS else "text/html",
            metadata=metadata,
        )
        self._files[fetched.url] = Artifact(
            layer=LAYER, name=name, path=path, size=len(fetched.content), metadata=metadata
        )

    async def pages(self) -> AsyncIterator[Fetched]:
        """Yield the pages, one at a time, in the order in which they came."""
        for file in list(self._files.values()):
            if file.name.startswith(PAGES) and file.metadata.get("status") == "200":
                fetched = await self._read(file)
                if fetched.is_page:
                    yield fetched

    async def _read(self, file: Artifact) -> Fetched:
        kept = dict(file.metadata)
        url, status = kept.pop("url"), int(kept.pop("status"))
        content = await self._ctx.artifacts.get(file.path) if file.size else b""
        return Fetched(url, status, content, kept)
