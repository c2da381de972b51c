"""Tables that the reference prints, made from the code: `python -m tests.docs.tables`."""

from __future__ import annotations

import msgspec

from headrace.config import Settings
from headrace.model.status import STATES, State, Status
from tests.engine.transitions import MOVES


def moves_table() -> str:
    """Every move that a job can make, by what engines keep."""
    rows = [
        f"| `{before.name.lower()}` | `{after.name.lower()}` | {reason} |"
        for before, after_to_reason in MOVES.items()
        for after, reason in after_to_reason.items()
    ]
    return "\n".join(["| from | to | when |", "|---|---|---|", *rows]) + "\n"


def lane_free_moves() -> str:
    """The same moves, by the statuses that people see."""
    lines = ["| status | may become |", "|---|---|"]
    for status in Status:
        after = {
            state.status
            for before in STATES[status]
            for state in MOVES[before]
            if state.status is not status
        }
        shown = ", ".join(f"`{each.value}`" for each in Status if each in after)
        lines.append(f"| `{status.value}` | {shown} |")
    return "\n".join(lines) + "\n"


def states_of(status: Status) -> tuple[State, ...]:
    """What engines keep for a status."""
    return STATES[status]


def settings_table() -> str:
    """Every setting with its variable and its default."""
    lines = ["| setting | environment variable | default |", "|---|---|---|"]
    for field in msgspec.structs.fields(Settings):
        default = field.default
        empty = default in (None, (), msgspec.NODEFAULT)  # a table is empty unless it is given
        shown = "not set" if empty else f"`{default}`"
        lines.append(f"| `{field.name}` | `HEADRACE_{field.name.upper()}` | {shown} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(moves_table(), lane_free_moves(), settings_table(), sep="\n")
