"""What is known of the dialects: a card each for all prompts, and references whose sections come on demand.

A card (``knowledge/cards``) is what models get wrong most, each rule with examples; lines under a heading
(``NEEDS``) are for schemas that have such columns or tables. Its lines in ``cards/odd`` say how odd values
are read, and schema text shows those that its columns need. A reference (``knowledge/dialects``, for the
SyntaxRetriever) is Markdown; each ``## topic`` is followed by a comment with keywords and a few lines with
one example.
"""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from quorum.knowledge.search.lexical import Bm25, terms

FOLDER = Path(__file__).parent / "dialects"
CARDS = {path.stem: path.read_text(encoding="utf-8").strip() for path in FOLDER.parent.glob("cards/*.md")}
"""Read now: no disk once an event loop runs."""
ODD = {path.stem: path.read_text(encoding="utf-8") for path in FOLDER.parent.glob("cards/odd/*.md")}
ALIASES = {"postgresql": "postgres", "mariadb": "mysql", "sqlite3": "sqlite"}
NEEDS = {
    "dates": re.compile(r"date|time|yyyy|\d{4}[-/.]\d\d|\d\d?([-/.])\d\d?\1\d{4}", re.IGNORECASE),
    "nested": re.compile(
        r"(?i:json)|\b(?:VARIANT|OBJECT|ARRAY|MAP|STRUCT|RECORD)\b|\w\[\]|[{[]\s*\"\"|^ {4}\S", re.MULTILINE
    ),
    "ranges": re.compile(r"^tables .*\{", re.MULTILINE),
    "places": re.compile(r"geography|geometry|latitude|\blat\b", re.IGNORECASE),
}
"""Headings in cards, and what shows in a schema text that the lines below them may be needed."""
KEYWORDS = re.compile(r"^<!-- (.*?) -->\n", re.MULTILINE)


@dataclass(frozen=True)
class Section:
    """One topic of a dialect's reference; ``text`` begins with its heading."""

    dialect: str
    topic: str
    keywords: tuple[str, ...]
    text: str


def dialects() -> list[str]:
    """The dialects that have a reference."""
    return sorted(path.stem for path in FOLDER.glob("*.md"))


@lru_cache(16)
def card(dialect: str, schema: str | None = None) -> str:
    """Return the card of a dialect without the lines that a schema text cannot need; empty where there is
    none."""
    first, *others = CARDS.get(_known(dialect), "").split("\n## ")
    parts = (part.partition("\n")[::2] for part in others)
    return "\n".join([first, *(text for need, text in parts if schema is None or NEEDS[need].search(schema))])


def idioms(dialect: str, topics: Container[str]) -> list[str]:
    """Return the lines on how the dialect reads odd values (``knowledge/cards/odd``), of these topics.

    Example: ``flag variants: `lower(trim(s)) IN ('yes', 'y', 'true', '1')`.``
    """
    lines = (line.removeprefix("- ") for line in ODD.get(_known(dialect), "").splitlines())
    return [line for line in lines if line.partition(":")[0] in topics]


def _known(dialect: str) -> str:
    return ALIASES.get(dialect.lower(), dialect.lower())


@cache
def sections(dialect: str) -> tuple[Section, ...]:
    """All sections of a dialect, in order; none for a dialect without a reference."""
    name = _known(dialect)
    if name not in dialects():
        return ()
    text = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    return tuple(_section(name, part) for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:])


def _section(dialect: str, part: str) -> Section:
    topic, _, body = part.partition("\n")
    found = KEYWORDS.search(body)
    keywords = tuple(word.strip() for word in found[1].split(",")) if found else ()
    return Section(
        dialect, topic.strip(), keywords, f"## {topic.strip()}\n{KEYWORDS.sub('', body, 1).strip()}"
    )


def lookup(dialect: str, features: Sequence[str], k: int = 4) -> list[Section]:
    """Sections for the features a model asked for, at most ``k``, in the order of the requests.

    A topic's own name finds it; other words go by BM25 over topics, keywords and texts. Every
    request gets its best section before any gets its second. A request that resembles nothing
    finds nothing; so does a dialect without a reference.
    """
    rankings = [_ranked(dialect, feature) for feature in features]
    found: list[Section] = []
    for depth in range(max(map(len, rankings), default=0)):
        for ranking in rankings:
            if depth < len(ranking) and ranking[depth] not in found:
                found.append(ranking[depth])
    return found[:k]


def _ranked(dialect: str, feature: str) -> list[Section]:
    """The sections for one feature: exactly the one it names, else at most two by likeness."""
    known = sections(dialect)
    named = [section for section in known if section.topic.casefold() == feature.strip().casefold()]
    if named or not known:
        return named
    index = _index(dialect)
    wanted = terms(feature)
    scores = index.scores(wanted)
    best = sorted(range(len(known)), key=lambda i: -scores[i])[:2]
    return [known[i] for i in best if scores[i] > 0 and scores[i] >= 0.7 * scores[best[0]]]


@cache
def _index(dialect: str) -> Bm25:
    """Topics and keywords count three times, the text once."""
    return Bm25([terms(" ".join([s.topic, *s.keywords] * 3 + [s.text])) for s in sections(dialect)])
