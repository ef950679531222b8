"""UnitChecker: name the unit of each number in a result, and say where the question asks for another."""

from __future__ import annotations

from pydantic import Field

from quorum.agents.role import Form, Role


class ColumnUnit(Form):
    column: str = Field(description="As the query names it.")
    unit: str = Field(description="What its values are in: euros, days, kg.")
    wanted: str = Field(default="", description="The unit that the question asks for, if it is another.")


class Units(Form):
    """The form of the reply. A field with a default may be missing; descriptions go into the prompt."""

    units: list[ColumnUnit] = Field(default=[], description="One for each column of quantities.")


UNIT_CHECKER = Role(
    "unit_checker",
    "UnitChecker",
    "finds the units of {units:column|columns}",
    Units,
    fallback=Units(),
)
