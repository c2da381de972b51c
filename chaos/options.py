"""What a run is asked to do."""

from __future__ import annotations

from dataclasses import dataclass

POLL = 1.0
"""The longest that an idle worker waits between two looks for jobs."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """A run. The same options and the same seed draw the same faults in the same order."""

    engine: str
    seconds: float
    seed: int
    # Names of faults; empty: all that fit the engine.
    faults: tuple[str, ...] = ()
    lease: float = 3.0
    # What a busy machine, and the start of a process, may add to lease and poll.
    allowance: float = 2.0
    # How long everything may take to come to rest at the end.
    quiet_limit: float = 90.0
    # How long every worker may take to complete a job again, before it is said not to be back.
    patience: float = 15.0
    # How long a worker may take to end after SIGTERM; its grace is 2 s.
    stop_limit: float = 10.0
    workers: int = 3
    slots: int = 8
    # Jobs that are asked for in a second.
    rate: float = 30.0
    # "everysec": Redis with a file that is synced every second. What that loses is counted apart.
    variant: str = ""
    # Programs of workers and producers. Tests give others, with a guard switched off.
    program: str = "chaos.program"
    producer: str = "chaos.producer"
    # Faults that are under way together, at most.
    burst: int = 8

    @property
    def fsync(self) -> str:
        """When Redis syncs its file."""
        return self.variant or "always"

    @property
    def label(self) -> str:
        """What results are kept under."""
        return f"{self.engine}, {self.variant}" if self.variant else self.engine

    @property
    def recovery_limit(self) -> float:
        """Within this the first job has to be completed after an outage."""
        return self.lease + POLL + self.allowance
