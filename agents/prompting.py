"""From templates to messages: one system prefix for all roles, then the role's own task.

Templates are Markdown with Jinja2 under ``agents/prompts``. Whatever a variable holds is data: it
cannot close the tag it stands in, nor open one of ours, so it can change no rule.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from jinja2 import DictLoader, Environment, StrictUndefined, TemplateNotFound, Undefined, UndefinedError

from quorum import agents
from quorum.agents.role import R, Role
from quorum.knowledge.syntax import card
from quorum.tools.models.structured import form_of


@dataclass(frozen=True)
class PromptContext:
    """What all roles of one question see.

    Attributes:
        dialect: sqlglot's name of the SQL dialect.
        schema: The compressed catalog as text.
        documents: What was retrieved for the question; may be empty.
        database: The database's name, for people.
    """

    dialect: str
    schema: str
    documents: str = ""
    database: str = ""


class Prompts:
    """The templates of some folders.

    ``rules.md`` and, with the card of the dialect, ``context.md`` make the system message, ``<role>.md`` the
    user message, ``repair.md`` the request to mend a reply.
    """

    def __init__(self, *folders: Path) -> None:
        files = [path for folder in folders for path in sorted(folder.glob("*.md"))]
        sources = {path.name: path.read_text("utf-8") for path in files}
        self.templates = frozenset(sources)
        self._folders, self._tags = folders, _tags_in(sources.values())
        self._environment = Environment(
            loader=DictLoader(sources),
            undefined=StrictUndefined,
            autoescape=False,
            trim_blocks=True,
            lstrip_blocks=True,
            finalize=self.fence,
        )
        self.system = lru_cache(maxsize=16)(self._system)

    def fence(self, value: Any) -> Any:
        """Text that can neither close nor open a tag of the prompts: ``</schema>`` → ``<\\/schema>``.

        Applied to every variable by itself. None becomes empty; what is no text stays as it is.
        """
        if value is None:
            return ""
        if isinstance(value, Undefined) or not isinstance(value, str):
            return value
        return self._tags.sub(lambda found: "<\\" + found[0][1:], value)

    def messages(
        self, role: Role[R], context: PromptContext | None, variables: dict[str, Any]
    ) -> list[dict[str, str]]:
        """The messages that put one task to a model.

        Args:
            context: Shared by all roles of a question; None for a role that needs no schema.
            variables: What the role's template asks for; ``reply_form`` is there anyway, and where a
                context is given ``dialect`` and ``database``.

        Raises:
            LookupError: There is no template for the role, or it asks for a variable that is not
                given; the message names it.
        """
        shared = {"dialect": context.dialect, "database": context.database} if context else {}
        known = shared | {"reply_form": form_of(role.reply)} | variables
        system = self.system(str(known.get("dialect", "")), context, role.sql)
        return [
            {"role": "system", "content": system},
            {"role": "user", "content": self.render(role.name, known)},
        ]

    def _system(self, dialect: str, context: PromptContext | None, sql: bool) -> str:
        parts = [self.render("rules", {"dialect": dialect, "sql": sql})]
        if context is not None:
            parts.append(self.render("context", {**vars(context), "card": card(context.dialect)}))
        return "\n\n".join(parts)

    def render(self, name: str, variables: dict[str, Any]) -> str:
        """One template as text."""
        try:
            return self._environment.get_template(f"{name}.md").render(variables).strip()
        except TemplateNotFound as error:
            raise LookupError(
                f"There is no prompt template {error.name} in {', '.join(map(str, self._folders))}."
            ) from error
        except UndefinedError as error:
            raise LookupError(f"The prompt template {name}.md lacks a variable: {error.message}") from error


_ATTRIBUTES = r"""(?:\s+[a-z_]+\s*=\s*["'][^<>]*)?"""
_OPENING = re.compile(rf"<([a-z][a-z0-9_]*){_ATTRIBUTES}>")


def show_row(row: Sequence[Any], limit: int = 100) -> str:
    """A result's row for a prompt, each cell as JSON of at most ``limit`` characters."""
    cells = (json.dumps(value, ensure_ascii=False, default=str) for value in row)
    return f"[{', '.join(cell if len(cell) <= limit else f'{cell[: limit - 1]}…' for cell in cells)}]"


def _tags_in(templates: Iterable[str]) -> re.Pattern[str]:
    """Matches every closing tag, and the opening tags that the folder's templates use."""
    used = {tag for template in templates for tag in _OPENING.findall(template)}
    names = "|".join(sorted(used | {"task"}))
    return re.compile(rf"<\s*/\s*[a-z_]|<\s*(?:{names}){_ATTRIBUTES}\s*/?>", re.IGNORECASE)


@cache
def _read(*folders: str) -> Prompts:
    return Prompts(*(Path(folder) / "prompts" for folder in folders))


def prompts() -> Prompts:
    """The templates beside the roles' modules."""
    return _read(*agents.__path__)


def prompt_file(role: str) -> str:
    """The template of a role, below the project's root; empty where there is none."""
    return f"agents/prompts/{role}.md" if f"{role}.md" in prompts().templates else ""


prompts()  # read now: no disk once an event loop runs
