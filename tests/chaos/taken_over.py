"""A fault that waits for its harm: a worker is frozen until another has begun its jobs again."""

from __future__ import annotations

import random

from chaos.faults.programs import FreezeWorker
from chaos.journal import Line, read

from tests.support.processes import until


class FreezeUntilTakenOver(FreezeWorker):
    """One worker is frozen in the middle of attempts, and wakes up when one of them is run twice.

    A freeze of a drawn length may end before anybody has taken over, above all on a busy machine:
    then a worker without a guard does no harm that could be caught.
    """

    name = "freeze until taken over"

    def draw(self, chance: random.Random) -> None:
        self.victims = [chance.choice(self.scene.workers)]
        self.seconds = self.scene.options.lease

    async def begin(self) -> None:
        [victim] = self.victims
        await until(lambda: self._open(read(self.scene.path), victim.pid), "an attempt")
        victim.freeze()

    async def end(self) -> None:
        [victim] = self.victims
        try:
            await until(lambda: self._taken_over(read(self.scene.path), victim.pid), "a takeover")
        finally:
            victim.thaw()

    @staticmethod
    def _open(lines: list[Line], pid: int) -> set[str]:
        """Return the jobs that a process has begun and not ended."""
        mine = [each for each in lines if each.pid == pid]
        ended = {each.job for each in mine if each.event == "end"}
        return {each.job for each in mine if each.event == "begin"} - ended

    def _taken_over(self, lines: list[Line], pid: int) -> bool:
        held = self._open(lines, pid)
        return any(each.event == "begin" and each.pid != pid and each.job in held for each in lines)
