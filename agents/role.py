"""Roles: each is declared once, in a module of this package, and found by its name."""

from __future__ import annotations

import difflib
import os
import pkgutil
import sys
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import import_module
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Annotated, Any, Generic, TypeAlias, TypeVar, cast, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    create_model,
    model_validator,
)
from pydantic.json_schema import SkipJsonSchema

from quorum.knowledge.errors import ConfigurationError

R = TypeVar("R", bound=BaseModel)
V = TypeVar("V")

EVENT_FIELDS = frozenset(
    {"t", "kind", "agent", "candidate", "node", "recipe", "code", "declared", "prompt", "usage", "error"}
)
"""Fields of every event of a trace; a reply cannot have one of the same name."""

GROUPS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "linking": ("schema_linker", "table_linker", "draft_linker", "info_agent", "context_expander"),
        "planning": ("planner", "plan_critique"),
        "exploration": ("column_explorer", "exploration_corrector", "explorer", "simulator", "describer"),
        "writing": ("sql_writer", "action", "tool_user", "gen_agent"),
    }
)
"""Roles that do the same work, in one recipe or in several, under one name."""


class Form(BaseModel):
    """The form of a role's reply, or of an object in one.

    A field without a default is one that the graph cannot do without: a query, a verdict, a choice. A reply
    may lack any other, as most prose. Models are asked for every field (``tools/models/structured.py``).

    What is plainly meant is taken: null where a field has a default, a number as a text, a text or an object
    where a list of them is wanted. Fields that the form lacks are ignored.
    """

    model_config = ConfigDict(coerce_numbers_to_str=True)

    @model_validator(mode="before")
    @classmethod
    def _as_meant(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        fields = {name: field for name, field in cls.model_fields.items() if name in given}
        unsaid = {name for name, each in fields.items() if given[name] is None and not each.is_required()}
        lists = {name for name, each in fields.items() if get_origin(each.annotation) is list}
        return {
            name: _listed(value) if name in lists else value
            for name, value in given.items()
            if name not in unsaid
        }


def _listed(value: Any) -> Any:
    """A text or an object by itself as a list of one; a list without nulls."""
    if isinstance(value, list):
        return [item for item in value if item is not None]
    if isinstance(value, str) and not value.strip():
        return []
    return [value] if isinstance(value, str | dict) else value


@dataclass(frozen=True)
class Ours:
    """Mark of a field that is ours and not the papers': ``plain`` leaves it out, or rewords it."""

    instead: str = ""


@cache
def plain(form: type[BaseModel]) -> Any:
    """Return the form as a model sees it without the fields marked ``Ours``; they keep their defaults."""
    fields, hidden = dict[str, Any](), cast("Any", SkipJsonSchema)
    for name, each in form.model_fields.items():
        for mark in (mark for mark in each.metadata if isinstance(mark, Ours)):
            shown = copy(each)
            shown.description = mark.instead
            fields[name] = (each.annotation if mark.instead else hidden[each.annotation], shown)
    return create_model(form.__name__, __base__=form, __doc__=form.__doc__, **fields) if fields else form


def usable(form: type[Form]) -> BeforeValidator:
    """Return a validator that drops the items of a list that do not fit ``form``."""

    def fits(item: Any) -> bool:
        try:
            return bool(form.model_validate(item))
        except ValidationError:
            return False

    return BeforeValidator(lambda items: [*filter(fits, items)] if isinstance(items, list) else items)


@dataclass(frozen=True, eq=False)
class Role(Generic[R]):
    """An agent. Its task is ``prompts/<name>.md`` in the folder of the module that declares it.

    Roles of this package are found by name, those of other packages in their recipe (``Recipe.roles``).

    Attributes:
        title: Its name for people: ``SchemaLinker``.
        gist: Its work in a few words for progress and trace. The reply's fields are in braces:
            ``{sql}``, ``{queries:query|queries}`` for how many of a list, ``{share:.2f}`` for a number.
        reply: The form of its reply. Prompt, response schema and the offline model's answer come from its
            fields; their descriptions go into the prompt.
        fallback: The reply in the place of a malformed one; None where a malformed one fails the step.
        sql: Its prompt has the house rules on queries; False for a role that neither writes nor judges one.
        schema: Its prompt shows the run's schema and documents; False for a role that is given what it needs.
        temperature: 0.0 for a judgement, unless the model asked has one (``Model.at``), or the recipe one for
            all; None where run or candidate decide (``quorum.graph.nodes.step.sampling``).
        declared: File and line of its declaration, below the project's root.
        folder: The module's folder; a template in its ``prompts`` wins over one of this package.
    """

    name: str
    title: str
    gist: str
    reply: type[R]
    fallback: R | None = None
    sql: bool = True
    schema: bool = True
    temperature: float | None = None
    declared: str = field(default="", init=False)
    folder: str = field(default="", init=False)

    def __post_init__(self) -> None:
        caller = sys._getframe(2)  # of the constructor, which the dataclass writes
        place = f"{module_file(caller.f_globals['__name__'])}:{caller.f_lineno}"
        object.__setattr__(self, "declared", place)
        object.__setattr__(self, "folder", os.path.dirname(caller.f_globals.get("__file__") or ""))  # noqa: PTH120
        if taken := EVENT_FIELDS & self.reply.model_fields.keys():
            raise ValueError(f"A reply cannot have the field {min(taken)!r}: every event has one of its own.")

    @cached_property
    def prompt(self) -> str:
        """The file of its task, below the project's root."""
        return str(PurePosixPath(self.declared).parent / "prompts" / f"{self.name}.md")


def module_file(module: str) -> str:
    """Return a module's file below the project's root, such as ``agents/planners.py``."""
    return f"{module.removeprefix('quorum.').replace('.', '/')}.py"


@cache
def roles() -> dict[str, Role[Any]]:
    """Return every role that a module of this package declares, by name, and those of ``add_role``."""
    found: dict[str, Role[Any]] = {}
    for module in pkgutil.iter_modules(import_module(str(__package__)).__path__):
        for value in vars(import_module(f"{__package__}.{module.name}")).values():
            if isinstance(value, Role):
                found.setdefault(value.name, value)  # a variant of a role comes after it
    return found


def add_role(role: Role[Any]) -> None:
    """Make a role of another package known.

    Raises:
        ConfigurationError: Another module has a role of that name.
    """
    known = roles().setdefault(role.name, role)
    if known.declared.partition(":")[0] != role.declared.partition(":")[0]:
        raise ConfigurationError(
            f"Two roles have the name {role.name!r}: {known.declared} and {role.declared}.",
            hint="Give yours another name.",
        )
    roles()[role.name] = role


def find_role(name: str) -> Role[Any] | None:
    """Return the role of that name; None where there is none (``database``, ``user``)."""
    return roles().get(name)


def check_roles(names: Iterable[str]) -> None:
    """Raise if one of ``names`` is neither a role nor one of ``GROUPS``.

    Raises:
        ConfigurationError: The hint suggests the nearest names and lists all.
    """
    for name in names:
        if name in GROUPS or find_role(name):
            continue
        near = difflib.get_close_matches(name, [*GROUPS, *roles()])
        hint = f"Did you mean {' or '.join(map(repr, near))}? " if near else ""
        raise ConfigurationError(
            f"model_for: there is no role {name!r}.",
            hint=f"{hint}Groups of roles: {', '.join(GROUPS)}. Roles: {', '.join(sorted(roles()))}.",
        )


def by_role(given: Mapping[str, V]) -> dict[str, V]:
    """Return what is given for roles and ``GROUPS`` of them, by role; a role's own wins."""
    of_groups = {role: given[group] for group, names in GROUPS.items() if group in given for role in names}
    return of_groups | {name: value for name, value in given.items() if name not in GROUPS}


def _some_sql(sql: str) -> str:
    if not sql.strip():
        raise ValueError("sql is empty")
    return sql.strip()


def _some_text(text: str) -> str:
    if not text.strip():
        raise ValueError("it is empty")
    return text.strip()


def said(text: Any) -> Any:
    """None where a model writes out that there is nothing to say."""
    nothing = isinstance(text, str) and text.strip().strip(".").casefold() in _NOTHING
    return None if nothing else text.strip() if isinstance(text, str) else text


def all_said(texts: Any) -> Any:
    """The first few sentences, each on a line; other prompts show them, too."""
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        return texts
    return [sentence(text) for text in map(said, texts) if text][:MAX_ASSUMPTIONS]


def sentence(text: str) -> str:
    """A text on one line, cut at ``MAX_SENTENCE``."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_SENTENCE else f"{line[: MAX_SENTENCE - 1]}…"


MAX_ASSUMPTIONS = 6
MAX_SENTENCE = 240  # characters

_NOTHING = ("", "null", "none", "n/a", "nothing")

Said: TypeAlias = Annotated[str | None, BeforeValidator(said)]
"""A text, or null for none."""

Ordered: TypeAlias = Annotated[
    bool,
    Ours(),
    Field(
        description="Whether the question asks for an order of rows (sorted by, A to Z, latest first), not "
        "merely for the first few or the most."
    ),
]
"""What roles that write a first query say of the question: rows in another order are another answer then."""

Assumptions: TypeAlias = Annotated[
    list[str],
    Ours(),
    BeforeValidator(all_said),
    Field(
        description="What the question does not say and you decide, where another choice would change the "
        "answer (a measure, a period), or a condition that can never hold; one short sentence each, nothing "
        "that the house rules settle."
    ),
]
"""What an answer rests on without the question having said it."""

Missing: TypeAlias = Annotated[
    Said,
    Ours(),
    Field(
        description="If no query over this database can answer: what it lacks, in one sentence. Else null."
    ),
]
"""That the data cannot answer is a reply like any other."""


def _probability(given: Any) -> Any:
    """A number from 0 to 1, as text too; None for anything else."""
    try:
        return number if not isinstance(given, bool) and 0 <= (number := float(given)) <= 1 else None
    except (TypeError, ValueError):
        return None


Certainty: TypeAlias = Annotated[
    float | None,
    Ours(),
    BeforeValidator(_probability),
    Field(
        description="How probably whoever asked will accept the result of `sql` as exactly what was meant, "
        "with no column or row too many or too few: 0 to 1 with two digits; use the whole range. Null "
        "without `sql`."
    ),
]
"""The writer's own estimate, said in numbers (verbalised confidence: Lin, Hilton and Evans, 2022)."""

Summary: TypeAlias = Annotated[
    str,
    Ours(),
    BeforeValidator(lambda text: said(text) or ""),
    Field(
        description="What the rows will show, in one plain sentence for the person who asked: no SQL, and no "
        "values that you cannot know yet."
    ),
]
"""The answer in words, read above its rows."""

NeededText: TypeAlias = Annotated[str, AfterValidator(_some_text)]
"""Words that the graph cannot do without: none are sent back, white space around them goes."""

SqlText: TypeAlias = Annotated[str, AfterValidator(_some_sql)]
"""A query in a reply: an empty one is sent back, white space around it goes."""
