"""Whether a program may use a store, by the schema numbers of both: one rule for all engines."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.errors import MigrationNeeded, SchemaTooNew


def check_program(
    store: str,
    *,
    version: int,
    min_program: int,
    known: int,
    pending: Sequence[str],
    allowed: bool,
    elsewhere: str,
) -> None:
    """Raise `SchemaTooNew` if the store refuses a program that knows versions up to `known`, and
    `MigrationNeeded` if something is pending and the program is not allowed to migrate.
    """
    if min_program > known:
        raise SchemaTooNew(
            f"{store} has version {version} and is for programs that know version {min_program}; "
            f"this Headrace knows versions up to {known}. Upgrade Headrace here, or use "
            f"{elsewhere}."
        )
    if pending and not allowed:
        raise MigrationNeeded(
            f"{store} has version {version} and lacks {', '.join(pending)}; the setting migrate "
            "is 'never'. Run `headrace migrate` with this version of Headrace, by a user who may "
            "change the schema."
        )
