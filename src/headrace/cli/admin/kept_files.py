"""What `doctor` says about kept files: how many, for whom, and which are not there."""

from __future__ import annotations

from collections import Counter

from headrace.artifacts import ArtifactStore
from headrace.artifacts.kept_files import kept
from headrace.cli.formatting import bytes_of, plural
from headrace.engine.base import Engine
from headrace.errors import ArtifactNotFound, EngineError
from headrace.model.views import Finding

PAGE = 1_000
# Each costs a question to the store.
MOST_CHECKED = 1_000
SHOWN = 5


async def kept_findings(engine: Engine, store: ArtifactStore) -> list[Finding]:
    """Count kept files and their bytes for each owner, and look whether they are there."""
    count: Counter[str] = Counter()
    size: Counter[str] = Counter()
    missing: list[tuple[str, str]] = []
    checked, cursor = 0, None
    while True:
        page = await kept(engine, cursor=cursor, limit=PAGE)
        for file in page.files:
            count[file.owner] += 1
            size[file.owner] += file.size
            if checked < MOST_CHECKED:
                checked += 1
                if not await _exists(store, file.path):
                    missing.append((file.path, file.owner))
        cursor = page.cursor
        if cursor is None:
            break
    if not count:
        return []
    told = "; ".join(
        f"{plural(count[owner], 'file')} ({bytes_of(size[owner])}) for {owner}"
        for owner in sorted(count)
    )
    unchecked = f"; only {checked:,} were looked for" if count.total() > checked else ""
    findings = [Finding("ok", "kept files", f"{told}{unchecked}")]
    if missing:
        shown = ", ".join(f"{path} for {owner}" for path, owner in missing[:SHOWN])
        more = f" and {len(missing) - SHOWN} more" if len(missing) > SHOWN else ""
        findings.append(
            Finding(
                "warning",
                "kept files",
                f"{plural(len(missing), 'record')} of kept files point to nothing: {shown}{more}",
                "Look at HEADRACE_ARTIFACTS, or release them: headrace artifacts release PATH "
                "--owner OWNER",
            )
        )
    return findings


async def _exists(store: ArtifactStore, path: str) -> bool:
    try:
        await store.size(path)
    except ArtifactNotFound:
        return False
    except EngineError:
        return True  # it is said elsewhere that the store is away
    return True
