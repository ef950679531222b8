"""``quorum recipes``: which agents run, after which paper."""

from __future__ import annotations

import click


@click.command(short_help="List the recipes: which agents run, after which paper.")
@click.option("--json", "as_json", is_flag=True, help="print one JSON array")
def command(as_json: bool) -> None:
    """List the recipes; choose one with `quorum ask --recipe NAME`."""
    import json

    from quorum.graph.recipes import RECIPES

    recipes = [
        {"name": r.name, "summary": r.summary, "paper": r.paper, "agents": list(r.agents)}
        for r in RECIPES.values()
    ]
    if as_json:
        click.echo(json.dumps(recipes, indent=2, ensure_ascii=False))
        return
    for recipe in recipes:
        click.secho(str(recipe["name"]), bold=True)
        click.echo(f"  {recipe['summary']}")
        click.echo(f"  agents  {', '.join(recipe['agents'])}")
        click.echo(f"  paper   {recipe['paper']}")
