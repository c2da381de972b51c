"""Jobs that this worker cannot run: their task is not known here, or what they are sealed with.

They are left for workers that can, and no attempt is spent.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headrace.errors import MissingEncryptionKey, SealRefused
from headrace.model.job import ClaimedJob
from headrace.model.outcome import RESERVED, Outcome, Reserved, Snoozed
from headrace.model.sealed import key_of_args
from headrace.task import Task

if TYPE_CHECKING:
    from headrace.encryption import Sealing

log = logging.getLogger("headrace.worker")

# This many names are logged, once each. Producers choose the names, so their number has no bound.
MOST_LOGGED = 1_000
MOST_NAMED = 5
# Until the engine knows that this worker cannot run a task, its jobs wait a moment: they would be
# offered to it again at once.
PUT_OFF = Snoozed(1.0, started=False)
# Others of its task may be sealed with keys that are here.
RESERVED_ALONE = Reserved(alone=True)


class UnknownTasks:
    """Finds claimed jobs that this worker cannot run, and opens those that are sealed.

    `not_for_us` are tasks of which there were jobs that it has not the keys for. `on_change` is
    called when there is one more: the engine has to be told that this worker does not know it, or
    the job would be offered to it again and again. `offered` says whether it may be offered jobs
    of a task that are reserved.
    """

    def __init__(
        self,
        *,
        tasks: Mapping[str, Task[..., Any]],
        built_in: Callable[[str], Task[..., Any] | None],
        sealing: Sealing | None,
        offered: Callable[[str], bool],
        on_change: Callable[[], object],
    ) -> None:
        self.tasks = tasks
        self.not_for_us: set[str] = set()
        self._built_in = built_in
        self._sealing = sealing
        self._offered = offered
        self._on_change = on_change
        self._logged: set[tuple[str, str | None]] = set()

    def among(self, jobs: Sequence[ClaimedJob]) -> list[tuple[ClaimedJob, Outcome]]:
        """Return the jobs that cannot be run here, each with its outcome: their task is neither
        registered nor built in, or their key is not here. Logs each task once. The arguments of
        sealed jobs among the others are open from then on.
        """
        tasks = self.tasks
        found: list[tuple[ClaimedJob, Outcome]] = []
        for job in jobs:
            if job.task not in tasks and self._built_in(job.task) is None:
                self._log_unknown(job)
                found.append((job, RESERVED))
            elif (key := key_of_args(job.args)) is not None:
                try:
                    self._open(job, key)
                except MissingEncryptionKey as error:
                    found.append((job, self.without_key(job, error)))
        return found

    def without_key(self, job: ClaimedJob, error: MissingEncryptionKey | None) -> Outcome:
        """Return the outcome of a job that needs a key that is not here: it goes to a worker that
        has it. None: this worker has no keys at all, and its task is encrypted. From any thread.
        """
        # One from a child process has its text only.
        key = getattr(error, "key", None)
        if self._is_new(job.task, key):
            log.error(
                "Job %s (%s) cannot be run here: %s. Its jobs are left for workers that have the "
                "keys, and no attempt is spent. Give them to this worker and restart it.",
                job.id,
                job.task,
                f'task "{job.task}" is encrypted, and this worker has no encryption keys '
                "(HEADRACE_ENCRYPTION_KEYS, HEADRACE_ENCRYPTION_KEY_FILE)"
                if error is None
                else error,
            )
        if job.task not in self.not_for_us:
            self.not_for_us.add(job.task)
            self._on_change()
        if self._offered(job.task):
            return PUT_OFF
        return RESERVED if self._sealing is None else RESERVED_ALONE

    def _open(self, job: ClaimedJob, key: str) -> None:
        if self._sealing is None:
            raise MissingEncryptionKey(
                f'its arguments are sealed with key "{key}", and this worker has no encryption '
                "keys (HEADRACE_ENCRYPTION_KEYS, HEADRACE_ENCRYPTION_KEY_FILE)",
                key=key,
            )
        job.sealed = True
        try:
            job.args = self._sealing.open_args(job.id, job.args)
        except SealRefused as error:
            # It stays sealed, and fails when it is to be run.
            log.error("%s", error)  # noqa: TRY400 - it is told whole

    def _is_new(self, task: str, key: str | None) -> bool:
        if (task, key) in self._logged or len(self._logged) >= MOST_LOGGED:
            return False
        self._logged.add((task, key))
        return True

    def _log_unknown(self, job: ClaimedJob) -> None:
        if not self._is_new(job.task, ""):
            return
        names = [f'"{name}"' for name in sorted(self.tasks)]
        more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        log.warning(
            'Task "%s" of job %s in queue "%s" is not registered here; its jobs are left for '
            "workers that know it. Registered: %s%s. Load its module with --app, or let this "
            "worker serve other queues with --queues.",
            job.task,
            job.id,
            job.queue,
            ", ".join(names[:MOST_NAMED]) or "none",
            more,
        )
