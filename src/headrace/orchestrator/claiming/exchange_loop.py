"""What becomes of a worker's dispatcher when the engine fails."""

from __future__ import annotations

from headrace.errors import WorkerUnhealthy
from headrace.loops.loop import LONGEST_ALONE, Loop
from headrace.telemetry import Telemetry


class ExchangeLoop(Loop):
    """A loop whose turns are exchanges with the engine."""

    telemetry: Telemetry
    connection_retries: int | None
    worker_id: str | None

    def backoff(self) -> float:
        """Return the pause after errors. Without a lease there is no renewal to cut it short."""
        seconds = super().backoff()
        return seconds if self.worker_id is not None else min(seconds, LONGEST_ALONE)

    def failed(self, error: Exception) -> None:
        """Raise `WorkerUnhealthy` if the engine has failed more often than the settings allow."""
        self.telemetry.exchange_failures += 1
        if (retries := self.connection_retries) is not None and self.failures > retries:
            raise WorkerUnhealthy(
                f"the engine failed {self.failures} times in a row and connection_retries is "
                f"{retries}; the last error was {type(error).__name__}: {error}"
            ) from error
