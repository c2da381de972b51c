"""Whether a program may use a store, by the schema numbers of both: one rule for all engines."""

from __future__ import annotations

from headrace.errors import MigrationNeeded, SchemaTooNew
from headrace.model.views import SchemaState


def check_program(store: str, state: SchemaState, *, allowed: bool, elsewhere: str) -> None:
    """Raise `SchemaTooNew` if the store refuses this program, and `MigrationNeeded` if something is
    pending and the program is not allowed to migrate.
    """
    if state.min_program > state.known:
        raise SchemaTooNew(
            f"{store} has version {state.version} and is for programs that know version "
            f"{state.min_program}; "
            f"this Headrace knows versions up to {state.known}. Upgrade Headrace here, or use "
            f"{elsewhere}."
        )
    if state.pending and not allowed:
        raise MigrationNeeded(
            f"{store} has version {state.version} and lacks {', '.join(state.pending)}; the "
            "setting migrate is 'never'. Run `headrace migrate` with this version of Headrace, by "
            "a user who may change the schema."
        )
