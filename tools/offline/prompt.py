"""A prompt as the offline model sees it: what stands in its tags, and nothing else."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache

from knowledge.errors import ConfigurationError
from knowledge.schema_text import parse_schema
from tools.offline.build import build_sql
from tools.offline.link import Linker
from tools.offline.reader import Choice
from tools.offline.schema import Schema


@dataclass(frozen=True)
class Prompt:
    """The text of a conversation, and how the reply is to be sampled."""

    text: str
    temperature: float = 0.0
    seed: int = 0

    def all(self, tag: str) -> list[str]:
        """What stands in each ``<tag>``, in order; the fence that keeps data from closing it is undone.

        A tag opens at the start of a line: the house rules name tags in running text.
        """
        found = re.findall(rf"^<{tag}(?:\s[^<>]*)?>(.*?)</{tag}>", self.text, re.DOTALL | re.MULTILINE)
        return [re.sub(r"<\\(?=/|\w)", "<", content).strip() for content in found]

    def get(self, tag: str) -> str:
        """What stands in the last ``<tag>``; empty if there is none."""
        return next(reversed(self.all(tag)), "")

    def attributes(self, tag: str, name: str) -> list[str]:
        return re.findall(rf'<{tag} {name}="([^"]*)"', self.text)

    @property
    def question(self) -> str:
        return self.get("question")

    @cached_property
    def linker(self) -> Linker:
        """The linker for the schema in the prompt; raises as ``linker_of``."""
        return linker_of(self.get("schema"))

    def sql(self, question: str = "", choice: Choice | None = None) -> str:
        """The query that the rules read out of the question, in the reading that sampling asks for."""
        choice = choice or Choice(self.temperature, self.seed)
        return build_sql(self.linker, question or self.question, choice, self.get("documents"))

    def other_sql(self, shown: list[str], needs: list[str] | None = None) -> str | None:
        """The first further reading that is none of the queries ``shown`` and holds all of ``needs``."""
        seen = {" ".join(sql.split()) for sql in shown}
        for seed in range(1, 25):
            sql = self.sql(choice=Choice(1.0, self.seed + seed))
            if " ".join(sql.split()) not in seen and all(need.lower() in sql.lower() for need in needs or ()):
                return sql
        return None


@lru_cache(maxsize=16)
def linker_of(schema: str) -> Linker:
    """The linker for a schema text; the last texts are parsed and indexed once.

    Raises:
        SchemaTextError: It is not in the form of ``knowledge.schema_text``.
        ConfigurationError: It has no table with columns.
    """
    known = Schema(parse_schema(schema))
    if not known.tables:
        raise ConfigurationError("The schema in the prompt has no table with columns to ask about.")
    return Linker(known)
