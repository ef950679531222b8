"""The nodes of the recipe's own, and the state by which they work together."""

from __future__ import annotations

from dataclasses import dataclass, field

from checked_sql.roles import UNIT_CHECKER
from quorum.graph.context import Context
from quorum.graph.nodes.step import Update, try_tell
from quorum.graph.state import RunState


@dataclass(frozen=True)
class Unit:
    """A column's unit; ``wanted`` is the question's, where it is another."""

    column: str
    unit: str
    wanted: str


@dataclass
class CheckedState(RunState):
    """The run's state with a field of the recipe's own. Each needs a default: a question begins with it."""

    units: list[Unit] = field(default_factory=list)


async def check_units(state: CheckedState, context: Context) -> Update:
    """Ask the UnitChecker about the winner; a reply that cannot be used is recorded and leaves no units."""
    winner = state.winner
    if winner is None or winner.result is None:
        return {}
    columns = ", ".join(winner.result.columns)
    found = await try_tell(state, context, UNIT_CHECKER, "units", sql=winner.sql, columns=columns)
    return {"units": [Unit(each.column, each.unit, each.wanted) for each in found.units]} if found else {}


async def note_units(state: CheckedState, _: Context, *, all_units: bool) -> Update:
    """Warn of each column whose unit is not the question's."""
    wrong = [f"{each.column} is in {each.unit}, not in {each.wanted}." for each in state.units if each.wanted]
    right = [f"{each.column} is in {each.unit}." for each in state.units if all_units and not each.wanted]
    return {"warnings": wrong + right}
