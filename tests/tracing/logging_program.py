"""Tasks that log, and that fail. Importing this does nothing else."""

from __future__ import annotations

import logging

import headrace

app = headrace.App()


@app.task
def plain(secret: str) -> None:
    logging.getLogger("shop").warning("packing")


@app.task(retries=0)
async def broken(secret: str) -> None:
    raise ValueError(f"{secret} is wrong")
