"""What the scenarios share: an arena with Headrace alone in it, and the rates they compare with."""

from __future__ import annotations

import contextlib
import functools
import subprocess
import time
from collections.abc import Callable, Iterator

from bench.arena import Arena
from bench.recorder import Recorder, Ticks

PROGRAM = "bench.scenarios.program"
SLOTS = 10
RUNS = 3
WINDOW = 20_000
LIMIT_SECONDS = 600.0
LOOK_SECONDS = 0.01


class Stage:
    """One engine. `scale` divides the number of jobs; `long` takes the time that issue 3 asks."""

    def __init__(
        self,
        engine: str,
        *,
        scale: int = 1,
        long: bool = False,
        server: str | None = None,
        backlog: int = 1_000_000,
    ) -> None:
        self.engine = engine
        self.scale = scale
        self.long = long
        # How many jobs wait, or have finished, where there are many of them.
        self.backlog = backlog
        self.arena = self._staged = Arena(engine, server)
        self.fresh = self.arena.fresh
        self._plain = Arena(engine, server)

    def jobs(self, count: int) -> int:
        """So many, or fewer in a quick run."""
        return count // self.scale

    def runs(self, count: int) -> int:
        """Best of so many; a quick run has to do with one."""
        return count if self.scale == 1 else 1

    @property
    def window(self) -> int:
        """Over how many starts a rate is taken: in a quick run as well enough of them that the
        first moments of a worker do not decide.
        """
        return WINDOW // min(self.scale, 2)

    @functools.cached_property
    def base(self) -> float:
        """What others are compared with: the rate of 20,000 no-op jobs, best of three."""
        return max(self.plain() for _ in range(self.runs(RUNS)))

    def plain(self) -> float:
        """That rate now, in a store beside the one that is on stage. A machine can be half as fast
        for minutes: what is compared has to be measured in turns.
        """
        count = self.window
        with self.beside(), self.arena.fresh():
            ticks = self.ticks(count)
            self.fill("tick", count)
            return self.drain(ticks, count)

    @contextlib.contextmanager
    def beside(self) -> Iterator[None]:
        """Work in the store beside the one that is on stage."""
        with self._in(self._plain):
            yield

    @contextlib.contextmanager
    def on_stage(self) -> Iterator[None]:
        """Work in the store that is on stage again, inside of `beside`."""
        with self._in(self._staged):
            yield

    @contextlib.contextmanager
    def _in(self, arena: Arena) -> Iterator[None]:
        before, self.arena = self.arena, arena
        try:
            yield
        finally:
            self.arena = before

    # -- words that scenarios are written in ---------------------------------------------------

    def ticks(self, count: int) -> Ticks:
        """A new count of starts."""
        return Ticks(self.arena.record, count)

    def recorder(self, count: int) -> Recorder:
        """A new record of starts."""
        return Recorder(self.arena.record, count)

    def fill(self, kind: str, count: int, **options: object) -> float:
        """Store jobs and answer how many a second."""
        return self.filled(kind, count, **options)["rate"]

    def filled(self, kind: str, count: int, **options: object) -> dict[str, float]:
        """Store jobs and answer the rate, and seconds of the processor that it took."""
        named = [part for name, value in options.items() for part in (f"--{name}", value)]
        answer = self.arena.call(
            PROGRAM, "fill", "--kind", kind, "--count", count, *named, limit=LIMIT_SECONDS
        )
        self.arena.come_to_rest()
        return answer

    @contextlib.contextmanager
    def worker(self, slots: int = SLOTS, tasks: int = 0) -> Iterator[subprocess.Popen[bytes]]:
        """One worker, stopped in good order, so that the next finds everything free. `tasks` is how
        many it has besides those of the program.
        """
        environment = {"BENCH_SLOTS": str(slots), "BENCH_TASKS": str(tasks)}
        with self.arena.process(PROGRAM, "worker", environment=environment, stop=True) as process:
            yield process

    def drain(self, ticks: Ticks, count: int) -> float:
        """Let one worker start `count` jobs; answer its starts per second."""
        before = ticks.count
        # The first start of a second worker falls between two marks.
        first = 0 if before == 0 else -(-before // Ticks.EVERY) * Ticks.EVERY + Ticks.EVERY
        with self.worker() as process:
            self.until(lambda: ticks.count >= first + count, process)
        return ticks.rate(first, first + count)

    def until(
        self,
        condition: Callable[[], bool],
        process: subprocess.Popen[bytes] | None = None,
        limit: float = LIMIT_SECONDS,
    ) -> None:
        """Wait for something that a process does."""
        end = time.monotonic() + limit
        while not condition():
            if process is not None and process.poll() is not None:
                raise RuntimeError(f"the worker ended: {self.arena.said()}")
            if time.monotonic() > end:
                raise RuntimeError(f"it took longer than {limit:g} s: {self.arena.said()}")
            time.sleep(LOOK_SECONDS)

    def close(self) -> None:
        self._staged.close()
        self._plain.close()
