"""From templates to messages: one system prefix for all roles, then the role's own task.

Templates are Markdown with Jinja2 under ``agents/prompts``. Whatever a variable holds is data: it
cannot close the tag it stands in, nor open one of ours, so it can change no rule.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from jinja2 import DictLoader, Environment, StrictUndefined, TemplateNotFound, Undefined, UndefinedError, meta
from pydantic import BaseModel

from quorum import agents
from quorum.agents.role import R, Role, plain
from quorum.knowledge.syntax import card
from quorum.tools.models.structured import form_of


@dataclass(frozen=True)
class PromptContext:
    """The variables that the templates of all roles of a question may use.

    Schema, documents and question are the first prompt of all (ReFoRCE, equation 1), as before it
    (ReFoRCE first version, equation 1). Two contexts are equal if their system messages are.

    Attributes:
        dialect: sqlglot's name of the SQL dialect.
        schema: The compressed catalog as text.
        documents: Passages that were retrieved for the question; may be empty.
        database: The database's name, for people.
        expected_format: The columns and rows that the answer is planned to have; may be empty.
        house: Prompts hold house rules, the dialect's card and reply fields that are ``Ours``; False for a
            paper's own way: its frame, and only what safety and the graph need.
    """

    dialect: str
    schema: str
    documents: str = ""
    database: str = ""
    question: str = field(default="", compare=False)
    expected_format: str = field(default="", compare=False)
    house: bool = True


class Prompts:
    """The templates of some folders.

    ``rules.md`` and, with the card of the dialect, ``context.md`` make the system message, ``<role>.md`` the
    user message, ``repair.md`` the request to mend a reply.
    """

    def __init__(self, *folders: Path) -> None:
        files = [path for folder in folders for path in sorted(folder.glob("*.md"))]
        sources = {path.name: path.read_text("utf-8") for path in files}
        self._sources, self._used = sources, dict[str, frozenset[str]]()
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
        self, role: Role[R], context: PromptContext, variables: Mapping[str, Any]
    ) -> list[dict[str, str]]:
        """Return the messages that put one task to a model.

        Args:
            context: Shared by all roles of a question. Templates may use all of it but the schema, which the
                system message of a role with ``schema`` shows.
            variables: The others that the role's template uses, but for ``reply_form``.

        Raises:
            LookupError: There is no template for the role, it lacks a variable, or it does not use one that
                is given; the message names it.
        """
        if unused := sorted(variables.keys() - self.variables(role.name)):
            raise LookupError(f"The prompt template {role.name}.md does not use {', '.join(unused)}.")
        shared = {name: value for name, value in vars(context).items() if name != "schema"}
        system = self.system(context, role.sql, role.schema)
        form: type[BaseModel] = role.reply if context.house else plain(role.reply)
        task = self.render(role.name, {**shared, "reply_form": form_of(form), **variables})
        return [{"role": "system", "content": system}, {"role": "user", "content": task}]

    def _system(self, context: PromptContext, sql: bool, schema: bool) -> str:
        parts = [self.render("rules", {**vars(context), "sql": sql})]
        if schema:
            guide = card(context.dialect, context.schema) if context.house else ""
            parts.append(self.render("context", {**vars(context), "card": guide}))
        return "\n\n".join(parts)

    def variables(self, name: str) -> frozenset[str]:
        """Return the variables that a template, and those that it includes, use."""
        if name not in self._used:
            tree = self._environment.parse(self._sources.get(f"{name}.md", ""))
            names = meta.find_undeclared_variables(tree)
            for included in meta.find_referenced_templates(tree):
                names |= self.variables(str(included).removesuffix(".md"))
            self._used[name] = frozenset(names)
        return self._used[name]

    def render(self, name: str, variables: Mapping[str, Any]) -> str:
        """Return one template as text."""
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
    """Return a result's row for a prompt, each cell as JSON of at most ``limit`` characters."""
    cells = (json.dumps(value, ensure_ascii=False, default=str) for value in row)
    return f"[{', '.join(cell if len(cell) <= limit else f'{cell[: limit - 1]}…' for cell in cells)}]"


def _tags_in(templates: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern for every closing tag, and the opening tags that the folder's templates use."""
    used = {tag for template in templates for tag in _OPENING.findall(template)}
    names = "|".join(sorted(used | {"task"}))
    return re.compile(rf"<\s*/\s*[a-z_]|<\s*(?:{names}){_ATTRIBUTES}\s*/?>", re.IGNORECASE)


@cache
def _read(*folders: str) -> Prompts:
    return Prompts(*(Path(folder) / "prompts" for folder in folders))


def prompts(folder: str = "") -> Prompts:
    """Return the templates of this package, with those of a role of another (``Role.folder``)."""
    return _read(*dict.fromkeys((*agents.__path__, *filter(None, [folder]))))


prompts()  # read now: no disk once an event loop runs
