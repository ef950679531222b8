"""``quorum recipes``: which agents run, after which paper, with which switches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from quorum.graph.recipes.recipe import Recipe


USUAL = ("votes", "strategy", "stopping", "temperature")


@click.command(short_help="List the recipes, or one with its switches.")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="print JSON")
def command(name: str | None, as_json: bool) -> None:
    """List the recipes, or all about one: its switches with the paper's values.

    Recipes of other packages follow, each with its package.

    Choose one with `quorum ask --recipe NAME`, its switches with `--switch NAME=VALUE`.
    """
    from quorum.graph.recipes import RECIPES, find_recipe

    if name is not None:
        found = _about(find_recipe(name), whole=True)
        _echo(found) if as_json else _show(found)
        return
    plugged_in = _plugged_in()
    if as_json:
        _echo([*(_about(recipe) for recipe in RECIPES.values()), *plugged_in])
        return
    for recipe in RECIPES.values():
        _head(_about(recipe))
    for each in plugged_in:
        click.secho(each["name"], bold=True)
        click.echo(f"  from    {each['package']}, {each['place']}")
        if each["name"] in RECIPES:
            click.echo(f"  taken   that is Quorum's; choose --recipe {each['place']}")


def _echo(found: Any) -> None:
    import json

    click.echo(json.dumps(found, indent=2, ensure_ascii=False))


def _plugged_in() -> list[dict[str, str]]:
    """Return the recipes of other packages, which are not imported."""
    from quorum.tools.plugins import RECIPES, installed, origin

    return [
        {"name": point.name, "package": origin(point), "place": point.value} for point in installed(RECIPES)
    ]


def _about(recipe: Recipe, *, whole: bool = False) -> dict[str, Any]:
    from dataclasses import fields

    about = {name: getattr(recipe, name) for name in ("name", "summary", "paper")}
    about["agents"] = list(recipe.agents)
    if not whole:
        return about
    about |= {name: getattr(recipe, name) for name in (*USUAL, "one_temperature")}
    own = [item for item in fields(recipe) if item.name in recipe.switches()]
    return about | {
        "switches": [
            {"name": item.name, "default": getattr(recipe, item.name), **item.metadata} for item in own
        ],
        "presets": {name: dict(values) for name, values in recipe.presets.items()},
    }


def _head(about: dict[str, Any]) -> None:
    click.secho(about["name"], bold=True)
    click.echo(f"  {about['summary']}")
    click.echo(f"  agents  {', '.join(about['agents'])}")
    click.echo(f"  paper   {about['paper']}")


def _show(details: dict[str, Any]) -> None:
    _head(details)
    usual = ", ".join(f"{name} {details[name]}" for name in USUAL)
    sampled = "of every role" if details["one_temperature"] else "of a model's candidates after its first"
    click.echo(f"  usual   {usual} {sampled}")
    if details["switches"]:
        click.secho("switches and limits (--switch NAME=VALUE)", bold=True)
    for each in details["switches"]:
        paper = f"; the paper: {each['paper']}" if each["paper"] else ""
        click.echo(f"  {each['name']}={_value(each['default'])}{paper}\n      {each['meaning']}")
    if details["presets"]:
        click.secho("presets (--preset NAME)", bold=True)
    for name, values in details["presets"].items():
        click.echo(f"  {name}  {', '.join(f'{key}={_value(value)}' for key, value in values.items())}")


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, tuple) else str(value)
