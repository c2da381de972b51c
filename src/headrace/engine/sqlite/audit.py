"""Checks the invariants over the whole store."""

from __future__ import annotations

from headrace.engine.sqlite.connection.thread import Transaction
from headrace.engine.sqlite.sql import query
from headrace.model.views import Finding

REMEDY = "This is a defect in Headrace: keep a copy of the file and report it."

# What a row of each check means.
CHECKS = (
    (query("audit_places"), "lane {1!r} of queue {0!r} counts {2} used places but {3} are held"),
    (query("audit_stuck"), "lane {1!r} of queue {0!r} uses {3} of {2} places while {4} jobs wait"),
    (query("audit_beaten"), "a waiting job of lane {1!r} of queue {0!r} beats a ready one"),
    (query("audit_twice"), "job {0} is both finished and unfinished"),
    (query("audit_keys"), "key {0!r} of task {1!r} and job {2} do not belong together"),
    (query("audit_suspended"), "job {0} waits for something, but is not scheduled"),
    (query("audit_entries"), "job {0} is gone but its entries are kept"),
)


def audit(transaction: Transaction) -> list[Finding]:
    """Everything that is not as it must be; empty means all is well."""
    return [
        Finding("error", "store", text.format(*row), REMEDY)
        for statement, text in CHECKS
        for row in transaction.connection.execute(statement)
    ]
