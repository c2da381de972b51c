"""Settlements that have followers: in which steps they are recorded. One rule for all engines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from headrace.engine.stored_text import is_id
from headrace.errors import InvalidInput
from headrace.model.job import NewJob
from headrace.model.outcome import Settlement


def steps(settlements: Sequence[Settlement]) -> list[list[Settlement]]:
    """Return the settlements in steps to be taken one after the other.

    In a step each job comes once, and either all have followers or none; those without come first.
    Outcomes of one job stay in their order.
    """
    left = list(settlements)
    found: list[list[Settlement]] = []
    while left:
        first, left = first_of_each(left)
        plain = [each for each in first if not each.follow]
        followed = [each for each in first if each.follow]
        found += [step for step in (plain, followed) if step]
    return found


def first_of_each(settlements: Sequence[Settlement]) -> tuple[list[Settlement], list[Settlement]]:
    """Return the first outcome of each job, and the others."""
    first: list[Settlement] = []
    others: list[Settlement] = []
    seen: set[str] = set()
    for each in settlements:
        (others if each.job_id in seen else first).append(each)
        seen.add(each.job_id)
    return first, others


def followers(settlements: Iterable[Settlement]) -> list[NewJob]:
    """Return the jobs that follow; raise `InvalidInput` if one has an id that no job can have."""
    found = [job for each in settlements for job in each.follow]
    for job in found:
        if not is_id(job.id):
            raise InvalidInput(
                f"a job that follows has the id {job.id!r}; use new_id() to make one"
            )
    return found
