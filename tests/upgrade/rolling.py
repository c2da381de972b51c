"""The upgrade itself: the same for the test and for those that show that the test can fail."""

from __future__ import annotations

import signal

from tests.upgrade.conftest import Scene
from tests.upgrade.installations import Installation

SIGNALS = (signal.SIGKILL, signal.SIGTERM)


async def roll(scene: Scene, old: Installation, new: Installation) -> None:
    """Let programs of the new installation come to those of the old one, then start each of all
    again, without warning and as asked. Everybody has to be at work after each step.
    """
    older = [scene.program(old, "worker"), scene.program(old, "producer")]
    for program in older:
        await program.at_work()
    newer = [scene.program(new, "worker"), scene.program(new, "producer")]
    for program in newer:
        await program.at_work()
    # Two at once, of both kinds and both installations, as it takes half the time.
    pairs = (older[0], newer[1]), (older[1], newer[0])
    for signum in SIGNALS:
        for pair in pairs:
            for program in pair:
                if signum == signal.SIGKILL:
                    program.process.kill()
                else:
                    await program.stop()
                program.start()
            for program in pair:
                await program.at_work()
    scene.check()
