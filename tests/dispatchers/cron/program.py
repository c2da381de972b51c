"""The App of real dispatchers in tests."""

from __future__ import annotations

import headrace

app = headrace.App()


@app.schedule("* * * * * *", missed="all", name="every-second")
@app.task
async def beat() -> None: ...


@app.schedule("30 2 * * *", tz="Europe/Berlin", params={"days": 2}, allow_overlap=False)
@app.task("report")
async def report(days: int = 1) -> None: ...
