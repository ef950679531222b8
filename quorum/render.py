"""An answer for people, on a terminal or in a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console, Group
from rich.panel import Panel
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from quorum.pipes import discard
from quorum.text import agreement, cell, count, printable, spent

SHOWN_ROWS = 20
LONG_LINE = 88  # characters of SQL
MAX_COLUMNS = 14  # wider tables are unreadable in a terminal

OnDone = Callable[[int, int], None]
"""Called with the number of questions done and of all questions."""

STATUS = {
    "answered": ("Answer", "green"),
    "unanswerable": ("The data cannot answer this", "yellow"),
    "no_answer": ("No answer found; the best effort", "yellow"),
    "stopped": ("Stopped by a limit; the best so far", "yellow"),
}


class PatientConsole(Console):
    """A console that goes quiet when its reader leaves (``| head``), where rich would end with 1."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        discard(self.file)


def console(*, stderr: bool = False) -> Console:
    """A console that keeps long lines whole where nobody looks at a screen."""
    made = PatientConsole(stderr=stderr, highlight=False)
    return made if made.is_terminal else PatientConsole(stderr=stderr, highlight=False, width=160)


@contextmanager
def counting(message: str = "reading") -> Iterator[OnDone]:
    """Show on standard error how far it is, where that is a terminal.

    Args:
        message: Shown until the first is done.
    """
    waiting = console(stderr=True)
    if not waiting.is_terminal:
        yield lambda *_: None
        return
    with waiting.status(message) as status:
        yield lambda done, total: status.update(f"question {done} of {total}")


def show_answer(answer: dict[str, Any], out: Console) -> None:
    """Print an answer (``quorum.graph.answer.Answer`` as a dict)."""
    title, colour = STATUS.get(answer.get("status", ""), STATUS["no_answer"])
    if answer.get("demonstration"):
        notice = "Demonstration: the rule-based offline model answered, not a language model."
        out.print(Text(notice, style="bold magenta"))
    out.print(
        Text(
            title + (f" ({answer['stopped_by']})" if answer.get("stopped_by") else ""), style=f"bold {colour}"
        )
    )
    for said in filter(None, (answer.get("missing"), answer.get("summary"))):
        out.print(Text(printable(str(said))))
    if answer.get("sql"):
        sql = sql_text(laid_out(answer["sql"], answer.get("dialect", "")))
        out.print(
            Panel(sql, border_style="dim", expand=False) if out.is_terminal else sql,
            soft_wrap=not out.is_terminal,
        )
    if answer.get("columns"):
        out.print(rows_table(answer["columns"], answer.get("rows") or []))
        out.print(Text(rows_note(answer), style="dim"))
    elif answer.get("status") != "unanswerable":
        out.print(
            Text("No candidate has a result." if answer.get("candidates") else "No candidate was begun.")
        )
        out.print(_failures(answer))
    for line in [*_assumptions(answer), *_readings(answer), *_disagreement(answer)]:
        out.print(line)
    for warning in answer.get("warnings") or []:
        out.print(Text(f"Warning: {printable(str(warning))}", style="yellow"))
    out.print(_facts(answer))


def laid_out(sql: str, dialect: str) -> str:
    """SQL of one long line laid out for people; other SQL as its author laid it out."""
    from quorum.tools.sql import format_sql

    one_long_line = len(sql) > LONG_LINE and "\n" not in sql.strip()
    return format_sql(sql, dialect) if one_long_line and dialect else sql


def sql_text(sql: str) -> Text:
    """SQL, coloured where there are colours."""
    painter = Syntax("", "sql", theme="ansi_dark", background_color="default")
    text = painter.highlight(printable(sql))
    text.rstrip()
    return text


def rows_table(columns: list[str], rows: list[list[Any]]) -> Table:
    """The first rows as a table; columns beyond ``MAX_COLUMNS`` are counted, not shown."""
    table = Table(border_style="dim", header_style="bold")
    shown = columns[:MAX_COLUMNS]
    for index, name in enumerate(shown):
        numeric = all(isinstance(row[index], int | float) or row[index] is None for row in rows)
        table.add_column(Text(cell(name, 40)), justify="right" if numeric and rows else "left")
    hidden = len(columns) - len(shown)
    if hidden:
        table.add_column(Text(f"… {hidden} more", style="dim"))
    for row in rows[:SHOWN_ROWS]:
        cells = [Text(cell(value), style="dim" if value is None else "") for value in row[:MAX_COLUMNS]]
        table.add_row(*cells, *([Text("…", style="dim")] if hidden else []))
    return table


def rows_note(answer: dict[str, Any]) -> str:
    """How many rows there are, how many are shown, and whether more were cut off."""
    total, shown = int(answer.get("row_count") or 0), len(answer.get("rows") or [])
    text = (
        count(total, "row")
        if shown >= total
        else f"the first {min(shown, SHOWN_ROWS)} of {count(total, 'row')}"
    )
    if answer.get("truncated"):
        text += "; cut off at the limit, there are more in the database"
    if shown < total:
        text += "; --csv prints all that were kept"
    return text


def _assumptions(answer: dict[str, Any]) -> list[Text]:
    """What the answer rests on without the question having said it."""
    return _listed("It assumes:", answer.get("assumptions") or [])


def _readings(answer: dict[str, Any]) -> list[Text]:
    """What else the question could mean."""
    return _listed("The question could also mean:", answer.get("readings") or [])


def _listed(head: str, sentences: list[Any]) -> list[Text]:
    """Sentences under their head: in one line, or one each where there are several."""
    said = [printable(str(sentence)) for sentence in sentences]
    if len(said) < 2:
        return [Text(" ".join([head, *said]))] if said else []
    return [*map(Text, [head, *(f"  {sentence}" for sentence in said)])]


def _disagreement(answer: dict[str, Any]) -> list[Text]:
    """How the strong answers of a close vote differ."""
    sentences = answer.get("disagreement") or []
    head = [Text("The candidates disagree:", style="yellow")] if sentences else []
    return [*head, *(Text(f"  {printable(str(sentence))}") for sentence in sentences)]


def _failures(answer: dict[str, Any]) -> Group:
    lines = [
        Text.assemble((f"{c['id']} ", "cyan"), printable(str(c.get("error") or "no result")))
        for c in answer.get("candidates") or []
    ]
    return Group(*lines)


def _facts(answer: dict[str, Any]) -> Table:
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim")
    facts.add_column()
    vote = answer.get("vote") or {}
    if agreed := agreement(answer):
        facts.add_row("votes", Text(f"{agreed}" + (f" ({vote['strategy']})" if vote.get("strategy") else "")))
    for note in vote.get("notes") or []:
        facts.add_row("", Text(printable(str(note))))
    if answer.get("columns"):
        confidence = float(answer.get("confidence") or 0)
        facts.add_row("confidence", Text(f"{confidence:.2f} of 1"))
    if answer.get("usage"):
        facts.add_row("cost", Text(spent(answer["usage"])))
    if answer.get("run_id"):
        facts.add_row("trace", Text(f"{answer.get('trace', '')}  (quorum trace show {answer['run_id']})"))
    return facts
