"""A program that publishes, for workers that are killed."""

from __future__ import annotations

import headrace
from tests.publishing.conftest import PROCESSED, publishing

app = publishing("sqlite://")  # HEADRACE_URL, or --url, says where


@app.task
async def process(ctx: headrace.Context, document: str) -> str:
    return ctx.publish(PROCESSED, {"document": document}, key=document)
