"""A recipe is data: which agents run, in which order, under which limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import Annotated, Any, Literal, Self, get_type_hints

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from quorum.agents.prompting import prompts
from quorum.agents.role import Role, add_role
from quorum.graph.options import RunOptions
from quorum.knowledge.errors import ConfigurationError, first_in_words

MOST = 100
"""No limit of a recipe may be set higher."""

Count = Annotated[int, Field(ge=0, le=MOST)]
"""A limit that may be nothing."""

AtLeastOne = Annotated[int, Field(ge=1, le=MOST)]
"""A limit without which a recipe makes no sense."""


BLANKS = "results that are empty, or all zero, NULL or empty text, vote only where there are no others"
HEADS = "'the data cannot answer' is no vote: it wins if more candidates say it than agree on any one answer"


def switch(default: Any, meaning: str, *, paper: str = "") -> Any:
    """A field that is a switch or a limit of a recipe.

    Args:
        meaning: One line; code in backticks.
        paper: The paper's value, where it is not the default; "open" where the paper does not say.
    """
    return field(default=default, metadata={"meaning": meaning, "paper": paper})


@dataclass(frozen=True)
class Recipe:
    """A named way of wiring the agents.

    A recipe's module subclasses it; the fields that it adds are the recipe's switches and limits
    (``switch``), of type bool, ``Count``, ``AtLeastOne`` or a ``Literal`` of names. They reach the
    nodes as arguments when the graph is wired.

    Attributes:
        summary: One line for ``quorum recipes``.
        paper: The paper and section it implements.
        agents: Roles in the order in which they may run.
        roles: Those of ``agents`` that the recipe's own package declares.
        wire: Makes the uncompiled graph (a LangGraph ``StateGraph``) of a recipe, with a context schema.
        votes: Candidates at most, where the run's options do not say.
        strategy: Of the vote, where the options leave it at ``auto``.
        stopping: When enough have voted (``quorum.graph.stopping``), where the options leave it at ``auto``.
        temperature: Of a model's candidates after its first, where the options do not say.
        one_temperature: Every role is sampled at ``temperature``, as its paper says. Else a model's first
            candidate and what candidates share are drawn at 0, and a role's own temperature counts.
        triplets: Of an exploration that the KnowledgeRetriever shows (``quorum explore``).
        matched_values: Values of the database that prompts show, where the options do not say.
        presets: Named sets of switches, votes and the like.
        preset: The one in force, if any.
        bound: Options of every run of its graph, whatever context a graph around it has; None if the context
            says them (``quorum.graph.builder.build_graph``).
        blanks_give_way, count_heads: Switches of every recipe's vote (``quorum.graph.ballots.Rules``).
    """

    name: str
    summary: str
    paper: str
    agents: tuple[str, ...]
    wire: Callable[[Any, type[RunOptions]], Any]
    votes: int = 3
    strategy: str = "auto"
    stopping: str = "never"
    roles: tuple[Role[Any], ...] = ()
    temperature: float = 0.7
    one_temperature: bool = False
    matched_values: int = 0
    triplets: int = 0
    presets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, hash=False)
    preset: str = ""
    bound: RunOptions | None = field(default=None, compare=False)
    blanks_give_way: bool = switch(False, BLANKS)
    count_heads: bool = switch(False, HEADS)

    def __post_init__(self) -> None:
        for role in self.roles:
            add_role(role)
            prompts(role.folder)  # read now: no disk once an event loop runs
        types = _types(type(self))  # type: ignore[arg-type]  # classes hash
        for name in self.switches():
            value = getattr(self, name)
            try:
                types[name].validate_python(value)
            except ValidationError as error:
                raise ConfigurationError(
                    f"The switch {name} is {value!r}: {first_in_words(error)}."
                ) from None

    @classmethod
    def switches(cls) -> tuple[str, ...]:
        """Names of the switches and limits that may be set otherwise."""
        return tuple(item.name for item in fields(cls) if item.metadata)

    def switched(self, switches: Mapping[str, Any]) -> Self:
        """The recipe with some of its switches and limits set otherwise.

        Raises:
            ConfigurationError: It has no such switch, or a value does not fit.
        """
        allowed = self.switches()
        if unknown := sorted(set(switches) - set(allowed)):
            hint = f"It has {', '.join(sorted(allowed))}." if allowed else "It has none."
            raise ConfigurationError(f"Recipe {self.name} has no switch {unknown[0]!r}.", hint=hint)
        return replace(self, **dict(switches))

    def set_to(self, preset: str) -> Self:
        """The recipe with one of its presets; as it is where the name is empty.

        Raises:
            ConfigurationError: It has no such preset.
        """
        if preset and preset not in self.presets:
            hint = f"It has {', '.join(self.presets)}." if self.presets else "It has none."
            raise ConfigurationError(f"Recipe {self.name} has no preset {preset!r}.", hint=hint)
        return replace(self, preset=preset, **self.presets[preset]) if preset else self

    def has(self, switches: Mapping[str, Any], preset: str = "") -> bool:
        """True if it is the recipe with this preset and these switches set otherwise, and no others.

        Raises:
            ConfigurationError: As ``switched`` and ``set_to``.
        """
        plain = replace(self, **{name: getattr(type(self), name) for name in self.switches()})
        return self.preset == preset and self == plain.set_to(preset).switched(switches)

    @property
    def begins_alone(self) -> bool:
        """True if one candidate is written first where one model votes and no number of votes is given."""
        return False

    @property
    def doubts_blanks(self) -> bool:
        """True if blank results vote only where there are no others."""
        return self.blanks_give_way

    @property
    def recursion_limit(self) -> int:
        """Steps that a run, or one candidate's branch, may take; a faulty loop ends there."""
        return 200


@dataclass(frozen=True)
class PaperRecipe(Recipe):
    """A recipe named after a paper, whose prompts can be the paper's."""

    prompts: Literal["house", "paper"] = switch("house", "with what is ours, or without", paper="paper")


@lru_cache(maxsize=32)
def _types(recipe: type[Recipe]) -> dict[str, TypeAdapter[Any]]:
    hints = get_type_hints(recipe, include_extras=True)
    strict = ConfigDict(strict=True)
    return {name: TypeAdapter(hints[name], config=strict) for name in recipe.switches()}
