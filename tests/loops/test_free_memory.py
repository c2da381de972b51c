"""Memory that was freed goes back to the machine."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys

import pytest

from headrace.loops.free_memory import keep_what_is_loaded

PROGRAM = """
import asyncio, contextlib, resource, sys
from headrace.loops.free_memory import memory_given_back

SIZE = 4000
COUNT = 20_000


def held():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


async def main(given_back):
    # `last` stays: so nothing is free at the end of the heap.
    blocks = [bytearray(SIZE) for _ in range(COUNT)]
    last = bytearray(SIZE)
    full = held()
    blocks.clear()
    with memory_given_back(every=0.01) if given_back else contextlib.nullcontext():
        until = asyncio.get_running_loop().time() + 5
        while full - held() < SIZE * COUNT // 2 and asyncio.get_running_loop().time() < until:
            await asyncio.sleep(0.01)
            if not given_back:
                break
    print(full - held() > SIZE * COUNT // 2, len(last))


asyncio.run(main(sys.argv[1] == "yes"))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only glibc can be told to")
@pytest.mark.parametrize("given_back", ["yes", "no"])
async def test_memory_that_is_free_in_the_middle_of_the_heap_is_given_back(given_back: str) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PROGRAM, given_back, stdout=subprocess.PIPE
    )
    out, _ = await process.communicate()
    assert out.decode().split()[0] == str(given_back == "yes")


def test_what_is_loaded_is_passed_over_by_the_collector() -> None:
    before = gc.get_freeze_count()
    keep_what_is_loaded()
    try:
        assert gc.get_freeze_count() > before
        assert len(gc.get_objects()) < gc.get_freeze_count()
    finally:
        gc.unfreeze()
