"""``quorum chat``: a conversation on the terminal."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from quorum.commands.options import Command, setting_flags
from quorum.knowledge.errors import QuorumError
from quorum.settings import Settings
from quorum.text import agreement, count, dollars, printable, trust

if TYPE_CHECKING:
    from quorum.answer import Answer
    from quorum.settings import Settings

COMMANDS = {
    "sql": "the query of the last answer",
    "rows": "all of its rows, as CSV",
    "why": "what speaks for and against it",
    "trace": "every step of it",
    "keep": "it is right: keep it; a note may follow",
    "correct": "the right query follows: keep that",
    "cost": "what this conversation has used",
    "new": "begin another one",
    "help": "this list",
    "quit": "end; or Ctrl-D",
}
HELP = """\
Ask on as you like: "and by month?", "only the first three", "show it as bars", "why so few in May?"
A line that ends in \\ goes on in the next. Arrow up brings back what a turn was understood as, to correct it.
Ctrl-C stops the question, not the conversation."""


@click.command(cls=Command)
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

    settings = Settings(**flags)
    _Terminal(settings_of(run, settings) if run else settings, run or "").serve()


class _Terminal:
    """A conversation on the terminal, or in lines of standard input."""

    def __init__(self, settings: Settings, run: str) -> None:
        from quorum.render import console
        from quorum.session import Quorum

        self.settings, self.session, self.out = settings, Quorum(settings=settings), console()
        self.chat, self.spent = self.session.chat(run=run), list[dict[str, Any]]()

    def serve(self) -> None:
        """Answer line by line until the input ends."""
        with asyncio.Runner() as self.runner, suppress(EOFError):
            try:
                tables = self.runner.run(self.session.resources()).catalog.tables
                _complete([*(f"/{name}" for name in COMMANDS), *(each.name for each in tables)])
                while True:
                    self._take()
            finally:
                self.runner.run(self.session.aclose())

    def _take(self) -> None:
        """Read a turn or a command, and do what it says."""
        try:
            line = input("> " if sys.stdin.isatty() else "")
            while line.endswith("\\"):
                line = f"{line[:-1]}\n{input('… ' if sys.stdin.isatty() else '')}"
            name, _, rest = line.strip().partition(" ")
            if not name.startswith("/"):
                self._ask(line.strip()) if name else None
            elif name[1:] in COMMANDS:
                self._obey(name[1:], rest.strip())
            else:
                click.echo(f"There is no {printable(name)}; /help lists what there is.", err=True)
        except KeyboardInterrupt:
            click.echo("Stopped. Ctrl-D ends the conversation.", err=True)
        except QuorumError as error:
            click.secho(printable(str(error)), fg="red", err=True)

    def _ask(self, turn: str) -> None:
        from quorum.graph.runs import RunFolder, new_run_id
        from quorum.progress import Progress
        from quorum.render import console, show_answer
        from quorum.terminal import dialogs

        run = RunFolder(self.settings.home / "runs" / new_run_id())
        try:
            with Progress(console(stderr=True)) as progress:
                given = {"run_id": run.run_id, "on_event": progress, **dialogs(progress, self.settings)}
                answer = self.runner.run(self.chat.ask(turn, **given))
        finally:  # a turn that was stopped has its cost, too
            if used := run.usage():
                self.spent.append(used)
        show_answer(answer, self.out, brief=True)
        if answer.became and not answer.of_run and "readline" in sys.modules:
            sys.modules["readline"].add_history(answer.became)

    def _obey(self, name: str, rest: str) -> None:
        last = self.chat.last
        if name == "quit":
            raise EOFError
        if name == "new":
            self.chat, self.spent = self.session.chat(), []
        elif name == "help":
            click.echo("\n".join([HELP, *(f"  /{name:<8} {said}" for name, said in COMMANDS.items())]))
        elif last is None:
            click.echo("Ask something first.", err=True)
        elif name == "sql":
            click.echo(printable(last.sql))
        elif name == "why":
            said = [trust(last)[0], last.grounds, agreement(last), *last.disagreement, *last.doubts]
            said += [f"It assumes: {text}" for text in last.assumptions]
            said += [f"It could also mean: {reading.says}" for reading in last.readings]
            click.echo("\n".join(map(printable, filter(None, said))))
        elif name == "cost":
            calls, prices = sum(used["model_calls"] for used in self.spent), [u["usd"] for u in self.spent]
            usd = dollars(None if None in prices else sum(prices))
            click.echo(f"{count(len(self.spent), 'turn')}: {count(calls, 'model call')} · {usd}")
        else:
            self._work(name, last, rest)

    def _work(self, name: str, last: Answer, rest: str) -> None:
        from quorum.commands.ask import write_csv
        from quorum.commands.keep import show_taught
        from quorum.graph.runs import RunFolder
        from quorum.render import show_report
        from quorum.report import report_of

        if name == "rows":
            write_csv(last, sys.stdout)
        elif name == "trace":
            show_report(report_of(RunFolder(Path(last.trace))), self.out)
        elif name == "keep":
            show_taught(self.runner.run(self.session.keep(last.run_id, note=rest)))
        else:
            show_taught(self.runner.run(self.session.correct(last.run_id, rest)))


def _complete(words: list[str]) -> None:
    """Let the terminal complete these words and bring back lines, where Python has readline."""
    with suppress(ImportError):
        import readline

        readline.set_completer(
            lambda start, n: [*(word for word in words if word.startswith(start)), None][n]
        )
        readline.set_completer_delims(" ")
        readline.parse_and_bind("tab: complete")
