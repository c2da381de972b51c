"""A program that real servers serve; its rule is in its code."""

from __future__ import annotations

import headrace

app = headrace.App("sqlite://", allow_private_webhooks=True)  # --url says where


@app.task(queue="mail")
async def fine() -> None:
    return None


app.alert("long", "queue_length", to="ops", above=2, severity="critical")
