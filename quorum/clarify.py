"""The terminal dialog that asks which of the disagreeing answers is meant."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from quorum.render import rows_table, sql_text
from quorum.terminal import Terminal
from quorum.text import count, laid_out, printable

if TYPE_CHECKING:
    from quorum.graph.clarification import Choice, Clarification

_INDENT = (0, 0, 0, 4)


class TerminalClarifier(Terminal):
    """The ``on_clarify`` of the command line."""

    def __call__(self, asked: Clarification) -> str:
        """The user's line; raises as ``line``."""
        return self.line(partial(show_clarification, asked), _prompt(asked), refused=asked.refused)


def show_clarification(asked: Clarification, out: Console) -> None:
    """Print the answers and how they differ."""
    out.print()
    out.print(Text("The candidates disagree. Which answer is meant?", style="bold yellow"))
    for sentence in asked.differences:
        out.print(Text(f"  {printable(sentence)}"))
    for choice in asked.choices:
        out.print()
        out.print(
            Text.assemble(
                (f"{choice.label}  ", "bold cyan"), printable(choice.says), (_backing(choice), "dim")
            )
        )
        sql = sql_text(laid_out(choice.sql, asked.dialect))
        sql.no_wrap = False  # what differs may stand at the end of a line
        out.print(Padding(sql, _INDENT))
        out.print(Padding(rows_table(choice.columns, choice.rows, choice.types), _INDENT))


def _backing(choice: Choice) -> str:
    more = choice.row_count - len(choice.rows)
    return f"  ({count(choice.candidates, 'candidate')}{f'; {more:,} more rows' if more > 0 else ''})"


def _prompt(asked: Clarification) -> str:
    labels = [choice.label for choice in asked.choices]
    own = ", or say it in your own words" if asked.own_words else ""
    return f"{', '.join(labels)}{own} (Enter: {labels[0]})"
