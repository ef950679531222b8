"""Linking: which words of a question name which tables, columns and values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from knowledge.catalog import Column, Table
from tools.offline.cues import AGGREGATES
from tools.offline.lexicon import STOP, Token, fit, likeness, name_stems
from tools.offline.schema import Schema, is_numeric

_GLUE = frozenset({"of", "the", "a"})
_WIDEST = 5  # words of the question that may name one column together


@dataclass(frozen=True)
class Option:
    """One thing that a mention may stand for; ``column`` is None where it is the table itself."""

    table: Table
    column: Column | None
    score: float
    value: str = ""


@dataclass(frozen=True)
class Mention:
    """Tokens ``start`` to ``end`` (excluded) and what they may stand for, best first.

    No option at all marks a snake_case word that the schema does not have.
    """

    start: int
    end: int
    options: tuple[Option, ...]

    def sure(self, score: float) -> bool:
        """Whether the best option reaches ``score``; a word that is trusted as written always does."""
        return not self.options or self.options[0].score >= score


class Linker:
    """Finds mentions. Built once for a schema; holds no state between questions but a cache."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._pairs = [(table, column) for table in schema.tables for column in table.columns]
        self._tables = {stems[0] for table in schema.tables if len(stems := name_stems(table.name)) == 1}
        self._samples: dict[str, list[Option]] = {}
        for table, column in self._pairs:
            for sample in column.samples if not is_numeric(column) else ():
                option = Option(table, column, 1.0, sample)
                self._samples.setdefault(sample.strip().casefold(), []).append(option)
        self._by_stem: dict[str, set[int]] = {}  # places in _pairs
        for place, (_, column) in enumerate(self._pairs):
            for stem in name_stems(column.name):
                self._by_stem.setdefault(stem, set()).add(place)
        self._cache: dict[tuple[str, ...], tuple[Option, ...]] = {}

    def mentions(self, tokens: Sequence[Token]) -> list[Mention]:
        """Non-overlapping mentions of tables and columns; longer names win, then earlier ones."""

        def look(start: int, end: int) -> Mention | None:
            if end == start + 1 and tokens[start].kind == "identifier":
                return self._identifier(tokens[start].text, start)
            counting = [token.stem for token in tokens[end - 1 : end + 1]] == ["number", "of"]
            computing = tokens[start].text.lower() in AGGREGATES
            nested = end > start + 1 and start > 0 and tokens[start - 1].text.lower() in AGGREGATES
            # "average total amount": the second word may belong to a name
            words = () if counting or (computing and not nested) else self._words(tokens[start:end])
            options = self._options(words) if words else ()
            good = options and options[0].score >= (0.6 if end > start + 1 else 0.3)
            return Mention(start, end, options) if good else None

        return self._sweep(len(tokens), _WIDEST, look)

    def values(self, tokens: Sequence[Token]) -> list[Mention]:
        """Words that a column holds as one of its samples, in any case."""

        def look(start: int, end: int) -> Mention | None:
            text = " ".join(token.text for token in tokens[start:end]).casefold()
            options = self._samples.get(text, []) if len(text) > 1 and text not in STOP else []
            if not options and tokens[start].capital and text.endswith(("an", "ese", "ish")):  # Asian: Asia
                near = (held for held in self._samples if len(held) > 3 and text.startswith(held[:-1]))
                options = self._samples.get(next(near, text), [])
            return Mention(start, end, tuple(options)) if options else None

        return self._sweep(len(tokens), 4, look)

    def knows(self, tokens: Sequence[Token]) -> bool:
        """Whether any word names a table, a column or a sample value."""
        return any(mention.options for mention in (*self.mentions(tokens), *self.values(tokens)))

    @staticmethod
    def _sweep(length: int, widest: int, look: Callable[[int, int], Mention | None]) -> list[Mention]:
        found: list[Mention] = []
        taken: set[int] = set()
        for width in range(widest, 0, -1):
            for start in range(length - width + 1):
                span = {*range(start, start + width)}
                if not taken & span and (mention := look(start, start + width)):
                    found.append(mention)
                    taken |= span
        return sorted(found, key=lambda mention: mention.start)

    def _words(self, tokens: Sequence[Token]) -> tuple[str, ...]:
        """The stems of a window that may be a name: it begins and ends in a word that says something."""
        low = [token.text.lower() for token in tokens]
        inner = [token for token, word in zip(tokens, low, strict=True) if word not in _GLUE]
        silent = any(token.text.lower() in STOP for token in inner)
        if silent or {low[0], low[-1]} & _GLUE or any(token.kind != "word" for token in tokens):
            return ()
        if len(inner) < len(tokens) and any(token.stem in self._tables for token in inner):
            return ()  # "id of the customer": a column and a table, not one name
        return tuple(stem for token in inner for stem in name_stems(token.text))

    def _options(self, words: tuple[str, ...]) -> tuple[Option, ...]:
        """Tables and columns that ``words`` may name, best first; a table before a column as good."""
        if words not in self._cache:
            found = [Option(table, None, fit(words, name_stems(table.name))) for table in self.schema.tables]
            like = (places for stem, places in self._by_stem.items() if likeness(words[0], stem))
            for table, column in (self._pairs[place] for place in sorted(set().union(*like))):
                names, own = name_stems(column.name), name_stems(table.name)
                inherited = tuple(name for name in names if name not in own) or names
                # "code" is nearly the whole of templates.template_code
                score = max(fit(words, names), 0.95 * fit(words, inherited))
                found.append(Option(table, column, score))
            found = [option for option in found if option.score > 0.25]
            found.sort(key=lambda option: (-option.score, option.column is not None))
            self._cache[words] = tuple(found[:25])
        return self._cache[words]

    def _identifier(self, name: str, start: int) -> Mention | None:
        """A snake_case word is trusted as written: it names what is called so, or something unknown."""
        low = name.casefold()
        found = [Option(t, c, 1.0) for t, c in self._pairs if c.name.casefold() == low]
        found += [Option(t, None, 1.0) for t in self.schema.tables if t.name.casefold() == low]
        return None if low in self._samples and not found else Mention(start, start + 1, tuple(found))
