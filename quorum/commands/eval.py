"""``quorum eval``: measure recipes on benchmarks. Each subcommand is a module, imported when called."""

from __future__ import annotations

import click

from quorum.cli import LazyGroup

COMMANDS = {
    "run": "Ask a benchmark's questions and keep what came of each.",
    "report": "Say how evaluations went: Markdown, or an HTML page with plots.",
    "compare": "Hold two evaluations against each other, question by question.",
    "score": "Score results that somebody else produced.",
    "export": "Write the submission that a benchmark wants.",
    "verify-gold": "Find gold answers that no longer reproduce.",
}


@click.group(cls=LazyGroup, known=COMMANDS, prefix="eval_")
def command() -> None:
    """Measure recipes on benchmarks or own questions; report, compare, score."""
