"""What a run is asked to do."""

from __future__ import annotations

from dataclasses import dataclass

LOOKS = 720
"""Every process and every table is looked at about so often in a run."""
RESTARTS = 24
"""So often one of the processes is replaced by a new one."""
LEAST_LOOK = 1.0
LEAST_LIFE = 2.5


@dataclass(frozen=True, kw_only=True)
class Options:
    """A run. The seed draws the load; what the machine makes of it differs from run to run."""

    engine: str
    seconds: float
    seed: int = 1
    # Requests in a second. Some of them make further jobs.
    rate: float = 10.0
    lease: float = 5.0
    grace: float = 2.0
    # How long finished jobs are kept: short, so that jobs are pruned all the time.
    history: float = 30.0
    # How long the store may take to be empty, a day later by its clock.
    patience: float = 180.0
    # Whether to look what is left a day later.
    day_after: bool = True
    # The program of all processes. Tests give others, which leak.
    program: str = "soak.program"

    @property
    def look_every(self) -> float:
        """Seconds between two looks."""
        return max(LEAST_LOOK, self.seconds / LOOKS)

    @property
    def restart_every(self) -> float:
        """Seconds between two restarts, of one process each."""
        return max(LEAST_LIFE, self.seconds / RESTARTS)
