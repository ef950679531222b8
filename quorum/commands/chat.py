"""``quorum chat``: a conversation on the terminal."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from quorum.commands.options import Command, setting_flags
from quorum.knowledge.errors import QuorumError
from quorum.text import printable

if TYPE_CHECKING:
    from quorum.answer import Answer
    from quorum.settings import Settings

HELP = """\
Ask, and ask on: "and by month?", "only the first three", "show it as bars", "why so few in May?"
A line that ends in \\ goes on in the next one. Arrow up brings what a turn was understood as, to correct it.
/sql      the query of the last answer      /keep [NOTE]   it is right: keep it
/rows     all of its rows, as CSV           /correct SQL   the right query instead
/why      what speaks for and against it    /cost          of this conversation
/trace    every step of it                  /new           begin another conversation
/help     this text                         /quit          or Ctrl-D
Ctrl-C stops the question, not the conversation."""


@click.command(cls=Command, short_help="Talk with a database: a turn may refer to those before.")
@click.option(
    "--continue",
    "run",
    is_flag=False,
    flag_value="last",
    metavar="[RUN]",
    help="go on with the conversation of a run  [last]",
)
@setting_flags()
def command(run: str | None, **flags: Any) -> None:
    """Talk with a database. A turn may refer to those before; /help lists the commands in it.

    What a turn was understood as is shown before its answer. Turns that need no query run none.
    """
    from quorum.chat import settings_of
    from quorum.settings import Settings

    settings = Settings(**flags)
    _Terminal(settings_of(run, settings) if run else settings, run or "").serve()


class _Terminal:
    """A conversation on the terminal, or in lines of standard input."""

    def __init__(self, settings: Settings, run: str) -> None:
        from quorum.render import console
        from quorum.session import Quorum

        self.session, self.out = Quorum(settings=settings), console()
        self.chat, self.spent = self.session.chat(run=run), list[dict[str, Any]]()
        self.names: list[str] = []

    def serve(self) -> None:
        """Answer line by line until the input ends."""
        with asyncio.Runner() as self.runner:
            try:
                catalog = self.runner.run(self.session.resources()).catalog
                self.names = [table.name for table in catalog.tables]
                for line in self._lines():
                    try:
                        if line == "/quit":
                            break
                        self._command(line) if line.startswith("/") else self._ask(line)
                    except KeyboardInterrupt:
                        click.echo("Stopped; go on asking. Ctrl-D ends the conversation.", err=True)
                    except QuorumError as error:
                        click.secho(printable(str(error)), fg="red", err=True)
            finally:
                self.runner.run(self.session.aclose())

    def _ask(self, turn: str) -> None:
        from quorum.progress import Progress
        from quorum.render import console, show_answer
        from quorum.terminal import Dialog, on_terminal

        settings, given = self.session.settings, dict[str, Any]()
        with Progress(console(stderr=True)) as progress:
            if on_terminal() and settings.clarify:
                given["on_clarify"] = Dialog(progress).clarify
            if on_terminal() and settings.approve != "never":
                given["on_approve"] = Dialog(progress).approve
            answer = self.runner.run(self.chat.ask(turn, on_event=progress, **given))
        self.spent.append(answer.usage)
        show_answer(answer, self.out, brief=True)
        if answer.became and not answer.of_run and sys.stdin.isatty():
            with suppress(ImportError):
                import readline

                readline.add_history(answer.became)

    def _command(self, line: str) -> None:
        name, _, rest = line.partition(" ")
        if name == "/help":
            click.echo(HELP)
        elif name == "/new":
            self.chat, self.spent = self.session.chat(), []
            click.echo("A new conversation.")
        elif (show := getattr(self, f"_{name[1:]}", None)) is None or name[1:] not in _SHOWS:
            click.echo(f"There is no {printable(name)}; /help lists what there is.", err=True)
        elif self.chat.last is None:
            click.echo("Ask something first.", err=True)
        else:
            show(self.chat.last, rest.strip())

    def _sql(self, last: Answer, _: str) -> None:
        from quorum.render import sql_text
        from quorum.text import laid_out

        self.out.print(sql_text(laid_out(last.sql, last.dialect)), soft_wrap=True)

    def _rows(self, last: Answer, _: str) -> None:
        from quorum.commands.ask import write_csv

        write_csv(last, sys.stdout)

    def _why(self, last: Answer, _: str) -> None:
        from quorum.text import agreement, trust

        parts = [
            ": ".join(filter(None, (trust(last)[0], last.grounds))),
            agreement(last),
            *last.disagreement,
            *last.doubts,
        ]
        parts += [f"It assumes: {text}" for text in last.assumptions]
        parts += [f"It could also mean: {reading.says}" for reading in last.readings]
        click.echo("\n".join(printable(part) for part in parts if part))

    def _trace(self, last: Answer, _: str) -> None:
        from quorum.graph.runs import RunFolder
        from quorum.render import show_report
        from quorum.report import report_of

        show_report(report_of(RunFolder(Path(last.trace))), self.out)

    def _cost(self, last: Answer, _: str) -> None:
        from quorum.text import spent

        click.echo(f"last turn: {spent(last.usage)}")
        keys = ("model_calls", "input_tokens", "cached_tokens", "output_tokens", "queries", "rows", "seconds")
        known = all(each.get("usd") is not None for each in self.spent)
        every = {key: sum(each.get(key) or 0 for each in self.spent) for key in (*keys, "usd")}
        click.echo(f"{len(self.spent)} turns:   {spent(every | ({} if known else {'usd': None}))}")

    def _keep(self, last: Answer, note: str) -> None:
        from quorum.commands.keep import show_taught

        show_taught(self.runner.run(self.session.keep(last.run_id, note=note)))

    def _correct(self, last: Answer, sql: str) -> None:
        from quorum.commands.keep import show_taught

        show_taught(self.runner.run(self.session.correct(last.run_id, sql)))

    def _lines(self) -> Iterator[str]:
        """Yield what is typed, without blank lines; a line that ends in a backslash goes on in the next."""
        history = self._readline() if sys.stdin.isatty() else None
        if history:
            click.echo("/help lists the commands. Ctrl-D ends the conversation.", err=True)
        parts: list[str] = []
        while True:
            try:
                line = input(("… " if parts else "> ") if sys.stdin.isatty() else "")
            except KeyboardInterrupt:
                click.echo()
                parts = []
                continue
            except EOFError:
                break
            if line.endswith("\\"):
                parts.append(line[:-1])
            elif said := "\n".join([*parts, line]).strip():
                parts = []
                yield said
        if history:
            import readline

            with suppress(OSError):
                readline.write_history_file(history)

    def _readline(self) -> Path | None:
        """Set up history and completion, where Python has readline; return the history's file."""
        try:
            import readline
        except ImportError:
            return None
        file = self.session.settings.home / "chat_history"
        words = [*(f"/{name}" for name in (*_SHOWS, "new", "help", "quit")), *self.names]

        def complete(start: str, number: int) -> str | None:
            found = [word for word in words if word.casefold().startswith(start.casefold())]
            return found[number] if number < len(found) else None

        readline.set_completer(complete)
        readline.set_completer_delims(" \t\n.,;()")
        readline.parse_and_bind("tab: complete")
        readline.set_history_length(1000)
        with suppress(OSError):
            readline.read_history_file(file)
        return file


_SHOWS = ("sql", "rows", "why", "trace", "cost", "keep", "correct")
