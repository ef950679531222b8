"""The tree of a search over a database: its states, what is covered, what may be tried next (paper 001, 3.2).

A node of the tree is a query state: the actions on the way to it. Its outcome is propagated to the states
above it and to the tables and columns of its query, and the next choice's prompt shows it. Nothing here calls
a model or a database.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from quorum.agents.explorers import SearchAction, StateText
from quorum.agents.role import sentence
from quorum.knowledge.catalog import Catalog, Column, ColumnRef, Table
from quorum.knowledge.naming import write_full_name, write_name, write_names
from quorum.knowledge.schema.layouts import units
from quorum.knowledge.triplets import Expansion, Triplet
from quorum.tools.masking import about_persons
from quorum.tools.sql.linking import Linked, prune

MAX_DEPTH = 8
"""Actions of one query: longer ones are nobody's examples."""

TABLES, COLUMNS, UNUSED, STATES, FEEDBACK = 8, 40, 20, 10, 8
"""That one choice is shown: tables, columns of each, unused ones, states that may grow, lines of feedback."""

MAX_DETAIL = 120
"""Characters of an action's detail; every later prompt of its branch repeats it."""

JOINED = "join"


@dataclass(frozen=True)
class Checked:
    """An action whose state and columns exist.

    Attributes:
        step: In words, as the Simulator reads it.
    """

    state: int
    action: str
    places: tuple[ColumnRef, ...]
    detail: str
    step: str


class SearchTree:
    """The tries so far, over the catalog as it is now.

    Args:
        groups: Tables of one shared field group are explored as one (an ablation: paper 001, Table 13).
        stale: Expansions whose tables have changed since: they count no more, and may be tried again.

    Attributes:
        fields: All there is to cover: of a shared field group those of its first table.
        covered: The fields that a triplet uses; ``shapes`` are those of their queries.
    """

    def __init__(
        self,
        catalog: Catalog,
        expansions: Iterable[Expansion] = (),
        triplets: Iterable[Triplet] = (),
        *,
        groups: bool = True,
        stale: Collection[int] = (),
    ) -> None:
        self.catalog, self._stale = catalog, stale
        self._stands_for = dict(_group_heads(catalog)) if groups else {}
        heads = [table for table in catalog.tables if self.head(table.full_name) == table.full_name]
        self.tables = {table.full_name: table for table in heads}
        self.fields = {(table.full_name, column.name): column for table in heads for column in table.columns}
        self._spelt = {
            (name, column.name): _spelt(catalog, table, column.name)
            for name, table in self.tables.items()
            for column in table.columns
        }
        self._by_name = {text: place for place, text in self._names()}
        self._by_case = {text.casefold(): place for text, place in self._by_name.items()}
        self.covered: set[ColumnRef] = set()
        self.by_id: dict[int, Expansion] = {}
        self._questions: dict[int, str] = {}
        self.shapes: set[str] = set()
        self._children: dict[int, list[Expansion]] = defaultdict(list)
        self._history: dict[int | str | ColumnRef, Counter[bool]] = defaultdict(Counter)
        for expansion in expansions:
            self.add(expansion)
        for triplet in triplets:
            self.cover(triplet)

    @property
    def coverage(self) -> float:
        """The share of fields that a triplet uses; 1 where there is none."""
        return len(self.covered) / len(self.fields) if self.fields else 1.0

    def head(self, table: str) -> str:
        """The table that stands for a shared field group; a table outside of groups for itself."""
        return self._stands_for.get(table, table)

    def add(self, expansion: Expansion) -> None:
        """Take up an expansion, and propagate its outcome to each state on its path (SQLAgent, 3.2).

        A failure counts for each table and column of the path as well; a success, for those of its triplet.
        """
        self.by_id[expansion.id] = expansion
        if expansion.id in self._stale:
            return
        self._children[expansion.parent].append(expansion)
        path, worked = self.path(expansion.id), expansion.outcome == "worked"
        for step in path[:-1]:
            self._history[step.id][worked] += 1
        if not worked:
            self._propagate((place for step in path for place in step.columns), worked=False)

    def cover(self, triplet: Triplet) -> None:
        """Count the fields of a triplet as covered; its question is that of its state."""
        self._questions[triplet.id] = sentence(triplet.description)
        self.shapes.add(triplet.shape)
        self.covered |= self._propagate(triplet.columns, worked=True) & self.fields.keys()

    def _propagate(self, columns: Iterable[ColumnRef], *, worked: bool) -> set[ColumnRef]:
        """Count an outcome for each of the columns, and each of their tables."""
        places = {(self.head(table), column) for table, column in columns}
        for node in places | {table for table, _ in places}:
            self._history[node][worked] += 1
        return places

    def path(self, state: int) -> list[Expansion]:
        """The expansions from the empty state to this one."""
        steps: list[Expansion] = []
        while state in self.by_id:
            steps.append(self.by_id[state])
            state = steps[-1].parent
        return steps[::-1]

    def steps(self, state: int) -> list[str]:
        """The actions of a state, in words."""
        return [self._step(each.action, each.columns, each.detail) for each in self.path(state)]

    def open_states(self) -> list[int]:
        """States that may grow, the most promising first: few children, and few failures below them."""
        found = [
            each.id
            for each in self.by_id.values()
            if each.outcome == "worked" and len(self.path(each.id)) < MAX_DEPTH and self._present(each.id)
        ]

        def tried(state: int) -> tuple[int, int]:
            return len(self._children[state]) + 2 * self._history[state][False], -state

        return sorted(found, key=tried)[:STATES]

    def state_texts(self) -> list[StateText]:
        """The open states as the Explorer sees them."""
        asks = self._questions
        return [StateText(n, self.steps(n), asks.get(n, ""), self._told(n)) for n in self.open_states()]

    def reachable(self) -> Catalog:
        """The part of the catalog that one choice is about: tables with most to cover, those of open states.

        Columns with a description come first, then the others, those not used yet before all; keys stay.
        """
        wanted = sorted(self.tables.values(), key=self._promise)[:TABLES]
        names = [table.full_name for table in wanted]
        names += [table for state in self.open_states() for table in self.tables_of(state)]
        shown = [self.tables[name] for name in dict.fromkeys(names) if name in self.tables][: 2 * TABLES]
        columns = tuple(
            (table.full_name, column.name) for table in shown for column in self._ranked(table)[:COLUMNS]
        )
        return prune(self.catalog, Linked(tuple(table.full_name for table in shown), columns), bare="key")

    def unused(self, shown: Catalog) -> list[str]:
        """A line for each table shown that has fields to cover: its name, and theirs as SQL spells them."""
        lines = []
        for table in (self.tables[each.full_name] for each in shown.tables):
            places = {c.name: (table.full_name, c.name) for c in table.columns}
            open_ = self.fields.keys() - self.covered
            left = [column for column in self._ranked(table) if places[column.name] in open_]
            if left:
                names = write_names((column.name for column in left[:UNUSED]), self.catalog.dialect)
                more = f" and {len(left) - UNUSED} more" if len(left) > UNUSED else ""
                lines.append(f"{_table_spelt(self.catalog, table)}: {names}{more}")
        return lines

    def feedback(self, shown: Catalog) -> list[str]:
        """Return the history of the tables shown and of their columns, then the latest failures.

        ``orders: 3 worked, 1 in vain; total 2 worked, 1 in vain; id 1 worked``
        """
        names = [table.full_name for table in shown.tables]
        history = []
        for name in filter(self._told, names):
            columns = [
                (name, column.name) for column in self.tables[name].columns if self._told((name, column.name))
            ]
            told = [f"{place[1]} {self._told(place)}" for place in columns[:UNUSED]]
            history.append("; ".join([f"{name}: {self._told(name)}", *told]))
        failures = [
            sentence(f"{'; '.join(self.steps(each.id))}: {each.message}")
            for each in self.by_id.values()
            if each.outcome != "worked" and {self.head(table) for table, _ in each.columns} <= {*names}
        ]
        return [*history, *failures[-FEEDBACK:]]

    def _told(self, node: int | str | ColumnRef) -> str:
        """Return the outcomes of a state, table or column in words, such as ``2 worked, 1 in vain``."""
        counts = self._history.get(node, Counter())
        words = {True: "worked", False: "in vain"}
        return ", ".join(f"{counts[each]} {word}" for each, word in words.items() if counts[each])

    def check(self, action: SearchAction) -> Checked | str:
        """The action as it can be tried, or in a sentence why it cannot."""
        places = tuple(dict.fromkeys(place for name in action.columns if (place := self._find(name))))
        for name in action.columns:
            if not self._find(name):
                return f"There is no column {sentence(name)}."
        if action.state and action.state not in self.by_id:
            return f"There is no state {action.state}."
        path = self.path(action.state)
        if not self._present(action.state):
            return f"State {action.state} reads what has changed since."
        if action.state and path[-1].outcome != "worked":
            return f"State {action.state} did not work, so nothing grows from it."
        if len(path) >= MAX_DEPTH:
            return f"State {action.state} has {MAX_DEPTH} actions already."
        if problem := self._misplaced(action, places):
            return problem
        detail = sentence(action.detail)[:MAX_DETAIL]
        same = (action.action, set(places), detail.casefold())
        for child in self._children[action.state]:
            if (child.action, set(child.columns), child.detail.casefold()) == same:
                return f"This was tried already, as state {child.id}."
        step = self._step(action.action, places, detail)
        return Checked(action.state, action.action, places, detail, step)

    def tables_of(self, state: int) -> list[str]:
        """The tables that a state reads, in the order in which they came in."""
        return list(dict.fromkeys(table for step in self.path(state) for table, _ in step.columns))

    def fragment(self, checked: Checked) -> Catalog:
        """The schema fragment S of a new state: its tables, with the columns on its path before all others.

        Wide tables show no more than ``COLUMNS``, and their keys.
        """
        places = [place for step in self.path(checked.state) for place in step.columns] + [*checked.places]
        tables = tuple(dict.fromkeys(table for table, _ in places))
        more = ((name, c.name) for name in tables for c in self._ranked(self.tables[name])[:COLUMNS])
        return prune(self.catalog, Linked(tables, tuple(dict.fromkeys([*places, *more]))))

    def _misplaced(self, action: SearchAction, places: Sequence[ColumnRef]) -> str:
        """Return the reason why the action does not fit its state; empty if it does."""
        own, named = self.tables_of(action.state), {table for table, _ in places}
        path = self.path(action.state)
        if action.state == 0:
            begins = action.action == "select_column" and len(named) == 1
            return "" if begins else "A new query begins with select_column, on one table."
        if action.action == JOINED:
            joins = len(places) == 2 and places[0][0] in own and places[1][0] not in own
            return "" if joins else "A join names a column of a table in the state, then one of a new table."
        if strangers := named - {*own}:
            return f"{', '.join(sorted(strangers))} is not in state {action.state}: join it first."
        shown = {place for step in path if step.action == "select_column" for place in step.columns}
        if action.action == "select_column" and {*places} <= shown:
            return "The state shows these columns already."
        if action.action == "having" and not {"aggregate", "group_by"} & {step.action for step in path}:
            return "Having needs groups: aggregate or group first."
        return ""

    def _present(self, state: int) -> bool:
        """True if the catalog still has all that a state uses, as it was."""
        steps = self.path(state)
        changed = any(step.id in self._stale for step in steps)
        return not changed and all(self._spelt.get(place) for step in steps for place in step.columns)

    def _step(self, action: str, places: Iterable[ColumnRef], detail: str) -> str:
        names = ", ".join(self._spelt.get(place, ".".join(place)) for place in places)
        return f"{action} {names}" + (f" ({detail})" if detail else "")

    def _promise(self, table: Table) -> tuple[bool, int, int, int]:
        left = [c for c in table.columns if (table.full_name, c.name) not in self.covered]
        described = sum(bool(column.description) for column in left)
        return table.row_count == 0, self._waste(table.full_name), -described, -len(left)

    def _waste(self, node: str | ColumnRef) -> int:
        """Return how far failures outnumber successes, by threes: what fails is shown later."""
        return max(self._history[node][False] - self._history[node][True], 0) // 3

    def _ranked(self, table: Table) -> list[Column]:
        def rank(column: Column) -> tuple[bool, int, bool, bool]:
            place = (table.full_name, column.name)
            private = about_persons(column.name)
            return place in self.covered, self._waste(place), private, not column.description

        return sorted(table.columns, key=rank)

    def _find(self, name: str) -> ColumnRef | None:
        name = name.strip()
        return self._by_name.get(name) or self._by_case.get(name.casefold())

    def _names(self) -> Iterator[tuple[ColumnRef, str]]:
        """Return the names of a column: bare, and as SQL spells it, which wins."""
        for table, column in self._spelt:
            yield (table, column), f"{self.tables[table].name}.{column}"
        for place in self._spelt:
            yield place, ".".join(place)
        yield from self._spelt.items()


def _group_heads(catalog: Catalog) -> Iterator[tuple[str, str]]:
    """Each table of a shared field group, with the group's first table."""
    for unit in units(catalog):
        head = next((table for table in unit if table.row_count != 0), unit[0])
        yield from ((table.full_name, head.full_name) for table in unit)


def _table_spelt(catalog: Catalog, table: Table) -> str:
    parts = (table.database, table.schema, table.name)
    return write_full_name([part for part in parts if part], catalog.dialect)


def _spelt(catalog: Catalog, table: Table, column: str) -> str:
    """A column as SQL spells it, with its table."""
    return f"{_table_spelt(catalog, table)}.{write_name(column, catalog.dialect)}"
