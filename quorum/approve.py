"""The terminal dialog that asks before a query runs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from quorum.event_text import title_of
from quorum.render import sql_text
from quorum.terminal import Terminal
from quorum.text import laid_out, listed, printable

if TYPE_CHECKING:
    from quorum.graph.approval import Approval


class TerminalApprover(Terminal):
    """The ``on_approve`` of the command line."""

    def __call__(self, asked: Approval) -> str:
        """The user's line; raises as ``line``."""
        return self.line(partial(show_approval, asked), "yes, no, or all (Enter: no)", refused=asked.refused)


def show_approval(asked: Approval, out: Console) -> None:
    """Print the query and what it would read."""
    who = " ".join(filter(None, (title_of(asked.agent), listed([asked.candidate]))))
    out.print()
    out.print(Text("May this query run?", style="bold yellow"))
    out.print(Text(f"  {printable(asked.why)}"))
    sql = sql_text(laid_out(asked.sql, asked.dialect))
    sql.no_wrap = False
    out.print(Padding(sql, (0, 0, 0, 4)))
    rows = f"; rows: about {asked.rows:,}" if asked.rows is not None else ""
    facts = f"Reads: {asked.reads}{rows}; database: {asked.database} ({asked.dialect}); for: {who}"
    out.print(Text(f"  {printable(facts)}", style="dim"))
