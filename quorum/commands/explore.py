"""``quorum explore``: learn a database before anybody asks."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from quorum.cli import interrupted
from quorum.commands.options import Command, setting_flags
from quorum.knowledge.errors import QuorumError
from quorum.text import count, spent

if TYPE_CHECKING:
    from quorum.graph.exploring import ExplorationResult

STUCK, STOPPED = 1, 3
FLAGS = (
    "database",
    "documents",
    "models",
    "model_for",
    "base_url",
    "timeout",
    "requests_per_second",
    "prices",
)
LIMITS = (
    *("temperature", "seed", "max_usd", "deadline", "max_run_bytes", "approve"),
    *("max_bytes", "max_rows", "result_bytes", "query_timeout"),
)
ENDED = {
    "coverage": "Enough is covered.",
    "attempts": "All attempts are used up.",
    "stuck": "No further query could be tried: the model's last choices did not fit.",
}


@click.command(cls=Command)
@click.option(
    "--coverage",
    type=float,
    default=0.9,
    metavar="SHARE",
    help="of fields in a triplet, at which it ends  [0.9]",
)
@click.option(
    "--attempts", type=int, default=300, show_default=True, metavar="N", help="queries tried at most"
)
@click.option(
    "--branches", type=int, default=4, show_default=True, metavar="N", help="queries tried at a time"
)
@click.option("--budget-calls", type=int, metavar="N", help="model calls, at most")
@click.option("--resume", is_flag=True, help="go on with what was explored before")
@click.option("--groups/--no-groups", default=True, help="explore tables of the same columns as one  [on]")
@click.option(
    "--execution/--no-execution",
    default=True,
    help="run each query, or only check it (for knowledge=static)  [on]",
)
@click.option("--personal", is_flag=True, help="keep and show what looks like personal data")
@click.option("--json", "as_json", is_flag=True, help="print one JSON object and nothing else")
@click.option("--quiet", "-q", is_flag=True, help="no progress on standard error")
@setting_flags(*FLAGS, *LIMITS, "explored", "home")
def command(*, as_json: bool, quiet: bool, budget_calls: int | None, **flags: Any) -> None:
    """Learn a database: grow small queries over it, run each, and keep those that work and mean something.

    What is kept are triplets: a piece of the schema, a query, and the question that it answers. `quorum ask`
    shows those that are like a question to its writers, in the recipes `quorum`, `team` and `sqlagent`; they
    are examples that a model made, and nothing that somebody has verified. `quorum kb export --triplets`
    lists them.

    It can be stopped at any time and goes on with --resume. Exit codes: 0 explored; 1 the model's choices did
    not fit; 2 usage or configuration; 3 a budget or the time ran out; 130 Ctrl-C.
    """
    from quorum.api import explore_sync
    from quorum.progress import SearchBoard
    from quorum.render import console

    with SearchBoard(console(stderr=True), quiet=quiet or as_json) as board:
        try:
            found = explore_sync(told=board.show, on_event=board, max_calls=budget_calls, **flags)
        except KeyboardInterrupt:
            board.stop()
            raise interrupted("What is finished is kept; go on with --resume.") from None
        except QuorumError as error:
            if board.run:
                error.hint = f"{error.hint} What is finished is kept; go on with --resume.".strip()
            raise
    _show(found, as_json=as_json)
    if found.ended == "stuck":
        raise SystemExit(STUCK)
    if found.ended not in ENDED:
        raise SystemExit(STOPPED)


def _show(found: ExplorationResult, *, as_json: bool) -> None:
    """Print what was learned."""
    if as_json:
        told = asdict(found) | {"coverage": found.coverage, "success": found.success}
        told["usage"] = found.usage.as_dict()
        click.echo(json.dumps(told, default=str, indent=2))
        return
    ended = ENDED.get(found.ended, f"Stopped by {found.ended}; go on with --resume.")
    click.echo(f"{ended} {found.coverage:.0%} of {count(found.fields, 'field')} stand in a triplet.")
    tried = f"{count(found.triplets, 'triplet')} of {count(found.attempts, 'attempt')}"
    click.echo(f"{tried} ({found.success:.0%} worked); {spent(found.usage.as_dict())}.")
    wrong = {name: n for name, n in found.outcomes.items() if name != "worked"}
    if wrong:
        click.echo("In vain: " + ", ".join(f"{n:,} {name}" for name, n in sorted(wrong.items())) + ".")

    click.echo(f"Kept in {found.folder}", err=True)
