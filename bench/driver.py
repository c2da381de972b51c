"""The table: what is measured of every contender, one at a time and from outside."""

from __future__ import annotations

import contextlib
import re
import time

import psutil  # type: ignore[import-untyped]

from bench.arena import LIMIT_SECONDS, Arena
from bench.contenders import Contender
from bench.environments import installed, python_for
from bench.figures import Figures
from bench.program import WARM_UP
from bench.recorder import Recorder

LOOK_SECONDS = 0.02
STEPS = ("enqueue_many", "drain_one", "enqueue_one", "enqueue_hundred", "drain_two", "latency")
# The bare limit has no client and no second worker.
BARE_STEPS = STEPS[:2]


def steps_of(contender: Contender) -> tuple[str, ...]:
    """What is measured of a contender."""
    return BARE_STEPS if contender.bare else STEPS


class Driver:
    """Measures contenders on one engine. `scale` divides the number of jobs."""

    def __init__(self, arena: Arena, *, scale: int = 1) -> None:
        self.arena = arena
        self.scale = scale

    def measure(self, contender: Contender, step: str) -> Figures:
        """The figures of one step. If it fails it leaves them out, and says why."""
        figures = Figures(contender.name, contender.engine)
        try:
            figures.versions = installed(contender)
            with self.arena.fresh():
                self._take(contender, step, figures)
        except Exception as error:  # one contender's trouble must not end the run
            figures.failures[step] = shown(error)
        return figures

    def _take(self, contender: Contender, step: str, figures: Figures) -> None:
        match step:
            case "enqueue_many":
                self._enqueue(contender, figures, step, contender.drain // self.scale)
            case "enqueue_one":
                self._enqueue(contender, figures, step, 3_000 // self.scale)
            case "enqueue_hundred":
                self._enqueue(contender, figures, step, 20_000 // self.scale)
            case "drain_one":
                self._drain(contender, figures, step, 1)
            case "drain_two":
                self._drain(contender, figures, step, 2)
            case "latency":
                self._latency(contender, figures)

    # -- steps ---------------------------------------------------------------------------------

    def _enqueue(self, contender: Contender, figures: Figures, step: str, count: int) -> None:
        Recorder(self.arena.record, 1)
        self._call(contender, "setup")
        answer = self._call(contender, step.replace("_", "-"), count)
        setattr(figures, step, float(answer["rate"]))

    def _drain(self, contender: Contender, figures: Figures, step: str, workers: int) -> None:
        # Two workers do not start in the same moment: what one does alone is not counted.
        skip = contender.drain // self.scale * (workers - 1)
        count = skip + contender.drain // self.scale
        record = Recorder(self.arena.record, count)
        self._call(contender, "setup")
        self._call(contender, "enqueue-many", count)
        with contextlib.ExitStack() as stack:
            started = [stack.enter_context(self._worker(contender)) for _ in range(workers)]
            limit = time.monotonic() + LIMIT_SECONDS
            while not record.all_started():
                if time.monotonic() > limit or any(p.poll() is not None for p in started):
                    raise RuntimeError(
                        f"{record.progress()} of {count} jobs started; {self.arena.said()}"
                    )
                if not record.started(skip):
                    psutil.cpu_percent()  # idle time counts from the first start that does
                elif workers == 1 and figures.memory_mb is None and record.progress() > count // 2:
                    figures.memory_mb = self.arena.memory_mb(started[0])
                    figures.connections = self.arena.connections(started[0])
                time.sleep(LOOK_SECONDS)
            if workers == 1:
                figures.spare_one = (1 - psutil.cpu_percent() / 100) * psutil.cpu_count()
        setattr(figures, step, record.rate(skip=skip))

    def _latency(self, contender: Contender, figures: Figures) -> None:
        count = WARM_UP + 300 // min(self.scale, 3)
        record = Recorder(self.arena.record, count)
        self._call(contender, "setup")
        with self._worker(contender):
            self._call(contender, "latency", count)
        latencies = record.latencies(skip=WARM_UP)
        figures.latency_p50 = latencies[len(latencies) // 2]
        figures.latency_p99 = latencies[int(len(latencies) * 0.99)]

    # -- processes -----------------------------------------------------------------------------

    def _call(self, contender: Contender, command: str, count: int = 0) -> dict[str, float]:
        return self.arena.call(
            contender.program,
            *(command, "--count", count),
            python=python_for(contender),
            environment=contender.environment,
        )

    def _worker(self, contender: Contender) -> contextlib.AbstractContextManager[psutil.Popen]:
        return self.arena.process(
            contender.program,
            "worker",
            python=python_for(contender),
            environment=contender.environment,
        )


def shown(error: Exception) -> str:
    """An error in one line that names no place of this machine."""
    text = " ".join(str(error).split()) or type(error).__name__
    return re.sub(r"(?<![\w.])/[\w./-]+/", "…/", text)[-300:]
