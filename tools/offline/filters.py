"""Rules that read conditions: periods, comparisons, patterns and values."""

from __future__ import annotations

from knowledge.catalog import Column, Table
from tools.offline import cues
from tools.offline.dates import find_period
from tools.offline.draft import literal
from tools.offline.lexicon import STOP, name_stems
from tools.offline.link import Option
from tools.offline.reader import Hit, Reader
from tools.offline.schema import day_first, is_date, is_numeric, is_place, is_text, is_year

_YES = frozenset({"t", "true", "yes", "y", "1"})
_NO = frozenset({"f", "false", "no", "n", "0"})
_LINKING = (STOP | {"named", "called", "equal", "exactly"}) - {"and"}


def read_periods(reader: Reader) -> None:
    """``in 2014``, ``from February to May 2024``, ``before 1990``: on a column of dates or years."""
    period = find_period(reader.words)
    if period is None:
        return

    def timely(column: Column) -> bool:
        return is_date(column) or (is_year(column) and period.years_only)

    beside = [m for m in (reader.before(period.start, 3), reader.after(period.start, 1)) if m]
    found = [(m, hit) for m in beside if (hit := reader.column(m, timely))]
    hit = found[0][1] if found else reader.any_column(is_year) if period.years_only else None
    hit = hit or reader.any_column(lambda column: is_date(column) and is_text(column))
    if hit is None:
        return
    reader.use(period.start, period.end)
    for mention, _ in found[:1]:
        reader.use(mention.start, mention.end)
    table, column = hit
    members = [m for m in reader.schema.families.get(table.full_name, ()) if period.covers(m.name)]
    if members:
        reader.draft.shards[table.full_name] = tuple(members)
    text = _iso(reader.draft.ref(table, column), column)
    year = is_year(column) and not is_date(column)
    reader.draft.where += period.conditions(text, year=year, numeric=is_numeric(column))


def _iso(ref: str, column: Column) -> str:
    """The column's text, turned to YYYY-MM-DD where its samples put the day first."""
    parts = f"SUBSTR({ref}, 7, 4) || '-' || SUBSTR({ref}, 4, 2) || '-' || SUBSTR({ref}, 1, 2)"
    return f"({parts})" if day_first(column) else ref


def read_comparisons(reader: Reader) -> None:
    """``age above 20``, ``at least 3 orders``, ``between 5 and 9``, ``heavier than average``."""
    for start, end, match in reader.find(f"between {cues.NUMBER} and {cues.NUMBER}"):
        if hit := _number_column(reader, start, end):
            reader.draft.where.append(f"{reader.draft.ref(*hit)} BETWEEN {match[1]} AND {match[2]}")
            reader.use(start, end)
    for words, operator in cues.COMPARISONS.items():
        for start, end, match in reader.find(rf"(?:{words})(?: [^\d ]+){{0,2}} {cues.NUMBER}"):
            _compare(reader, start, end, operator, match[1])
        for start, end, match in reader.find(rf"(?:{words}) (?:the )?({'|'.join(cues.EXTREMES)})"):
            if hit := _number_column(reader, start, end):
                reader.draft.compare_with_extreme(*hit, operator, cues.EXTREMES[match[1]])
                reader.use(start, end)
    for start, end, match in reader.find(f"{cues.NUMBER} {cues.OR_MORE}"):
        _compare(reader, start, end, "<=" if match[2] in cues.FEWER else ">=", match[1])


def _compare(reader: Reader, start: int, end: int, operator: str, number: str) -> None:
    """Compare the number with a column, or with the count of the rows that it stands before."""
    mention = reader.after(end, 1)
    counted = reader.table(mention)
    if mention and counted is not None:
        reader.draft.having.append(f"COUNT(*) {operator} {number}")
        reader.draft.count(counted)
        reader.use(start, mention.end)
    elif hit := _number_column(reader, start, end):
        reader.draft.where.append(f"{reader.draft.ref(*hit)} {operator} {literal(number, hit[1])}")
        reader.use(start, end)


def _number_column(reader: Reader, start: int, end: int) -> Hit | None:
    """The numeric column nearest to the tokens: among them, after, before, or implied by an adjective."""
    among = next((m for m in reader.mentions if start <= m.start < end and reader.free(m)), None)
    for mention in (among, reader.after(end, 1), reader.before(start, 4), reader.after(end, 4)):
        if mention and (hit := reader.column(mention, is_numeric)):
            reader.use(mention.start, mention.end)
            return hit
    comparative = reader.words[start].removesuffix("er")
    return reader.implied((cues.implied(comparative) or ([], ""))[0])


def read_patterns(reader: Reader) -> None:
    """``names that contain the letter x``, ``starting with 'Mc'``, ``with 'Hey' in its title``."""
    subject = (reader.draft.main, reader.schema.label(reader.draft.main))
    for pattern, form in cues.PATTERNS.items():
        for start, end, _ in reader.find(pattern):
            later = reader.after(end + 1, 1) if reader.words[end : end + 1] == ["in"] else None
            hit = reader.column(later or reader.before(start, 4), is_text) or subject
            text = form.format(reader.tokens[end - 1].text.replace("'", "''"))
            like = "NOT LIKE" if reader.negated(start, 3) else "LIKE"
            reader.draft.where.append(f"{reader.draft.ref(*hit)} {like} '{text}'")
            reader.use(start, later.end if later else end)


def read_values(reader: Reader) -> None:
    """Quoted words, known samples, proper names and bare numbers: equal to some column."""
    conditions: dict[tuple[str, bool], list[str]] = {}
    placed: dict[int, Hit] = {}  # by where the value ended
    for start, end, options in _candidates(reader):
        if reader.used & {*range(start, end)}:
            continue
        series = placed.get(start - 1) if reader.words[start - 1] in ("or", "and", ",") else None
        text = " ".join(token.text for token in reader.tokens[start:end])
        found = (*series, text) if series else _belongs(reader, start, end, text, options)
        if found is None:
            continue
        table, column, value = found
        placed[end] = (table, column)
        condition = (reader.draft.ref(table, column), reader.negated(start, 5))
        conditions.setdefault(condition, []).append(literal(value, column))
        reader.use(start, end)
    for (ref, negated), values in conditions.items():
        unique = list(dict.fromkeys(values))
        if len(unique) == 1:
            reader.draft.where.append(f"{ref} {'<>' if negated else '='} {unique[0]}")
        else:
            reader.draft.where.append(f"{ref} {'NOT IN' if negated else 'IN'} ({', '.join(unique)})")


def _candidates(reader: Reader) -> list[tuple[int, int, tuple[Option, ...]]]:
    """Spans that may be values, with the samples they equal; the surest kinds first."""
    held = {mention.start: mention.options for mention in reader.values}
    spans: list[tuple[int, int, tuple[Option, ...]]] = [
        (place, place + 1, held.get(place, ()))
        for place, token in enumerate(reader.tokens)
        if token.kind == "quoted"
    ]
    for mention in reader.values:
        named = reader.at(mention.start)
        if reader.tokens[mention.start].capital or named is None or named.options[0].score < 0.9:
            spans.append((mention.start, mention.end, mention.options))
    spans += [(start, end, ()) for start, end in _proper_names(reader)]
    return spans + [(p, p + 1, ()) for p, token in enumerate(reader.tokens) if token.kind == "number"]


def _proper_names(reader: Reader) -> list[tuple[int, int]]:
    """Runs of capitalised words inside a sentence, less those that the schema knows as names."""
    found, place = [], 1
    while place < len(reader.tokens):
        end = place
        while any(t.capital or (end > place and t.kind == "number") for t in reader.tokens[end : end + 1]):
            end += 1
        mention = reader.at(place)
        start = mention.end if mention and mention.sure(0.9) else place
        if end > start and (reader.words[place - 1] not in (".", "?") or end > place + 1):
            found.append((start, end))
        place = max(end, place + 1)
    return found


def _belongs(
    reader: Reader, start: int, end: int, text: str, options: tuple[Option, ...]
) -> tuple[Table, Column, str] | None:
    """Where a value belongs: a column named beside it, one that holds it, or a table's label."""
    number = reader.tokens[start].kind == "number"
    around = [reader.before(start, 3), reader.after(end, 0)]
    beside = [mention for mention in (reversed(around) if number else around) if mention]
    for mention in beside:
        linked = {*reader.words[mention.end : start]} <= _LINKING and mention.sure(0.45)
        if linked and (hit := reader.column(mention, is_numeric if number else is_text)):
            reader.use(mention.start, mention.end)
            return *hit, next((o.value for o in options if o.column is hit[1]), text)
    ranks = {table.full_name: rank for rank, table in enumerate(reader.tables())}
    holding = [option for option in options if option.column and reader.draft.reaches(option.table)]
    for option in sorted(holding, key=lambda option: ranks.get(option.table.full_name, len(ranks))):
        return option.table, option.column or reader.schema.label(option.table), option.value
    if number:
        return None
    if {"from", "in"} & {*reader.preceding(start, 1)} and (place := reader.any_column(is_place)):
        return *place, text
    tables = [table for mention in beside if (table := reader.table(mention)) is not None]
    if reader.tokens[start].kind != "quoted":
        tables += [table for table in reader.tables() if table is not reader.draft.main]
    table = [*tables, reader.draft.main][0]
    label = reader.schema.label(table)
    return (table, label, text) if is_text(label) else None


def read_flags(reader: Reader) -> None:
    """``official languages``: a column of yes and no that the question names is asked to be yes."""
    for mention in filter(reader.free, reader.mentions):
        hit = reader.column(mention, lambda column: name_stems(column.name)[0] in ("is", "ha"))
        samples = {sample.casefold(): sample for sample in hit[1].samples} if hit else {}
        yes, no = _YES & samples.keys(), _NO & samples.keys()
        if hit and yes and no and len(samples) == 2:
            sign = "<>" if reader.negated(mention.start, 3) else "="
            value = literal(samples[min(yes)], hit[1])
            reader.draft.where.append(f"{reader.draft.ref(*hit)} {sign} {value}")
            reader.use(mention.start, mention.end)
