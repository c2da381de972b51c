"""A task that publishes from a child process. Importing this does nothing else."""

from __future__ import annotations

import headrace
from tests.publishing.conftest import PROCESSED, publishing

app = publishing("sqlite://")


@app.task(isolate="process")
def process(ctx: headrace.Context, document: str) -> list[str]:
    try:
        ctx.publish(PROCESSED, {"chunks": 1})
    except headrace.InvalidArguments as error:
        refused = str(error)
    return [ctx.publish(PROCESSED, {"document": document}), refused]
