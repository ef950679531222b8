"""Rules that read what the answer looks like: order, extremes, groups, aggregates, columns."""

from __future__ import annotations

import re

from tools.offline import cues
from tools.offline.draft import UNITS
from tools.offline.lexicon import name_stems
from tools.offline.link import Mention
from tools.offline.reader import Hit, Reader
from tools.offline.schema import is_date, is_numeric, is_text


def read_order(reader: Reader) -> None:
    """``ordered by age descending``, ``in alphabetical order of name``."""
    for start, end, match in reader.find(cues.ORDER):
        down = next(reader.find(cues.DOWN), None)
        direction = "DESC" if down else "ASC"
        mention = reader.before(start, 6) if match[0].endswith("order") else reader.after(end, 4)
        table, option = reader.table(mention), reader.resolve(mention) if mention else None
        if table is not None and {"number", "count"} & {*reader.words[end : end + 2]}:
            reader.draft.count(table)
            reader.draft.order.append(("COUNT(*)", direction))
        elif table is None and option and option.column:
            reader.draft.order.append((reader.draft.ref(option.table, option.column), direction))
        else:
            label = reader.schema.label(reader.draft.main)
            reader.draft.order.append((reader.draft.ref(reader.draft.main, label), direction))
        reader.use(start, max(end, mention.end if mention else 0))
        if down:
            reader.use(down[0], down[1])
        return


def read_functions(reader: Reader) -> None:
    """``average and maximum age``, ``total amount``: functions, then the columns they apply to."""
    words = "|".join(cues.AGGREGATES)
    for start, end, _ in reader.find(rf"(?:{words})(?:(?: ,)?(?: and)?(?: the)? (?:{words}))*"):
        end = next((place for place in range(start, end) if reader.at(place)), end)  # "average total amount"
        functions = [cues.AGGREGATES[word] for word in reader.words[start:end] if word in cues.AGGREGATES]
        owned = {"with", "has", "have", "having"} & {*reader.preceding(start, 2)}
        if (owned and {*functions} <= {"MAX", "MIN"}) or reader.words[end : end + 2] == ["number", "of"]:
            continue  # "the city with the maximum population" is an extreme, "total number of" a count
        mention = reader.after(end, 3)
        while mention and (hit := reader.column(mention, is_numeric)):
            text = reader.draft.ref(*hit)
            reader.draft.aggregates += [(start + n, f"{name}({text})") for n, name in enumerate(functions)]
            reader.use(start, end)
            reader.use(mention.start, mention.end)
            functions = functions[:1]
            joined = reader.words[mention.end : mention.end + 1] == ["and"]
            mention = reader.after(mention.end + 1, 0) if joined else None


def read_superlatives(reader: Reader) -> None:
    """``the oldest singer``, ``the most orders``, ``most common type``, ``top 3 products by price``."""
    for place, word in enumerate(reader.words):
        meaning, mention = cues.superlative(word), reader.at(place)
        if meaning is None or place in reader.used or reader.words[place - 1] == "at":
            continue
        if mention and mention.end > mention.start + 1:
            continue  # "best finish" is a column
        columns, direction = meaning
        limit, end = _how_many(reader, place)
        adjective = cues.implied(reader.words[end]) if end < len(reader.words) else None
        if adjective and word in ("most", "least"):
            columns, direction, end = adjective[0], cues.turned(adjective[1], word == "least"), end + 1
        if hit := _ordered_by(reader, place, end, columns):
            expression, last = hit
            reader.use(place, last)
            if _alone(reader, place) and limit == 1 and not columns and expression != "COUNT(*)":
                function = "MAX" if direction == "DESC" else "MIN"
                reader.draft.aggregates.append((place, f"{function}({expression})"))
                continue
            reader.draft.order.insert(0, (expression, direction))
            reader.draft.limit = limit
            return


def _how_many(reader: Reader, place: int) -> tuple[int, int]:
    """The N of ``top N`` or ``N oldest``, and where the cue ends."""
    for beside, end in ((place + 1, place + 2), (place - 1, place + 1)):
        token = reader.tokens[beside] if 0 <= beside < len(reader.tokens) else None
        if token and token.kind == "number" and token.text.isdigit():
            reader.use(beside, beside + 1)
            return max(int(token.text), 1), end
    return 1, place + 1


def _ordered_by(reader: Reader, place: int, end: int, columns: list[str]) -> tuple[str, int] | None:
    """What an extreme is of, a count of rows or a column, and where the words for it end."""
    if reader.words[place] == "top" and "by" in reader.words[end:]:  # "top 5 customers by number of orders"
        by = reader.words.index("by", end)
        order = _ordered_by(reader, by, by + 1, [])
        reader.use(by, order[1] if order else by)
        return (order[0], end) if order else None
    rest = " ".join(reader.words[end : end + 3])
    if not columns and (common := re.match(cues.COMMON, rest)):
        return "COUNT(*)", end + len(common[0].split())
    number = rest.startswith(("number of", "amount of"))
    mention = reader.after(end + 2 * number, 2)
    table = reader.table(mention)
    counting = number or reader.words[place] in ("most", "least", "fewest")
    if mention and table is not None and counting and not columns:
        reader.draft.count(table)
        return "COUNT(*)", mention.end
    if mention and (hit := reader.column(mention, lambda column: is_numeric(column) or is_date(column))):
        return reader.draft.ref(*hit), mention.end
    if hit := reader.implied(columns):
        return reader.draft.ref(*hit), end
    before = reader.before(place, 3)
    if before and not columns and (hit := reader.column(before, is_numeric)):
        reader.use(before.start, before.end)
        return reader.draft.ref(*hit), end
    return None


def _alone(reader: Reader, place: int) -> bool:
    """Whether nothing to show has been named before the extreme: ``what is the highest price``."""
    return not any(mention.end <= place and reader.free(mention) for mention in reader.mentions)


def read_groups(reader: Reader) -> None:
    """``for each country``, ``per month``, ``average age by segment``."""
    for start, end, match in reader.find(r"(?:(?:for|in|of|by) )?(?:each|every|per)|by|for different"):
        done = reader.words[start - 1].endswith(("ed", "en"))  # "written by" names who did it
        if match[0] == "by" and (done or not cues.COMPUTING & {*reader.words[:start]}):
            continue
        mention = reader.after(end, 2)
        if {*reader.words[end : end + 1]} & UNITS.keys() and _group_by_time(reader, end):
            reader.use(start, end + 1)
        elif mention and (hit := _shown_for(reader, mention)):
            reader.draft.shown.append((mention.start, *hit))
            reader.use(start, mention.end)


def _shown_for(reader: Reader, mention: Mention) -> Hit | None:
    """What to show of a mention: a table's label, or the column itself."""
    if (table := reader.table(mention)) is not None:
        return table, reader.schema.label(table)
    return reader.column(mention, lambda _: True)


def _group_by_time(reader: Reader, place: int) -> bool:
    """Group by the month, year or day of a date where no column is called so."""
    hit = reader.any_column(lambda column: is_date(column) and is_text(column))
    if hit is None or reader.any_column(lambda column: reader.words[place] in name_stems(column.name)):
        return False
    ref, (form, length) = reader.draft.ref(*hit), UNITS[reader.words[place]]
    text = {
        "sqlite": f"strftime('{form}', {ref})",
        "duckdb": f"strftime(CAST({ref} AS TIMESTAMP), '{form}')",
    }.get(reader.schema.dialect, f"SUBSTR(CAST({ref} AS VARCHAR), 1, {length})")
    reader.draft.computed.append((place, text))
    return True


def read_counts(reader: Reader) -> None:
    """``how many orders``, ``number of different countries``, ``count the customers``."""
    for start, end, _ in reader.find(cues.COUNT):
        mention = reader.after(end, 4)
        while mention and (further := reader.after(mention.end, 0)):  # "car models": the last word counts
            reader.use(mention.start, mention.end)
            mention = further
        reader.draft.aggregates.append((start, _count(reader, end, mention)))
        reader.use(start, end)
        if mention:
            reader.use(mention.start, mention.end)


def _count(reader: Reader, end: int, mention: Mention | None) -> str:
    table, hit = reader.table(mention), reader.column(mention, lambda _: True)
    distinct = bool(cues.DISTINCT & {*reader.words[end : end + 2]})
    if table is not None:
        reader.draft.count(table)
        key, joined = reader.schema.key(table), len(reader.draft.tables) > 1
        once = distinct or reader.choice.strays("count once", 0.5)
        return f"COUNT(DISTINCT {reader.draft.ref(table, key)})" if key and joined and once else "COUNT(*)"
    if mention and hit and mention.sure(0.5):
        if distinct or (mention.sure(0.9) and is_text(hit[1]) and not reader.draft.where):
            return f"COUNT(DISTINCT {reader.draft.ref(*hit)})"
        reader.draft.count(hit[0])
    return "COUNT(*)"


def read_columns(reader: Reader) -> None:
    """Columns named where the question says what to show; failing that, the subject's label."""
    draft, zone = reader.draft, _zone(reader)
    for mention in reader.mentions:
        hit = reader.column(mention, lambda _: True)
        if hit and zone[mention.start] and reader.free(mention) and mention.sure(0.45):
            draft.shown.append((mention.start, *hit))
            reader.use(mention.start, mention.end)
    draft.everything = next(reader.find(cues.EVERYTHING), None) is not None
    draft.distinct = bool(cues.DISTINCT & {*reader.words}) or reader.choice.strays("distinct", 0.3)
    if not (draft.shown or draft.aggregates or draft.computed):
        named = [table for place, table in reader.named.items() if zone[place] and draft.reaches(table)]
        subject = [*named, draft.main][0]
        draft.shown.append((0, subject, reader.schema.label(subject)))


def _zone(reader: Reader) -> list[bool]:
    """For each token, whether it stands where a question says what to show."""
    zone, inside, seen = [], True, False
    for place, word in enumerate(reader.words):
        grouped = word == "for" and reader.words[place + 1 : place + 2] in (["each"], ["all"], ["every"])
        if word in cues.ASKING:
            inside = True
        elif word == "which":
            inside = not seen
        elif word in cues.CUTS and not grouped:
            inside = False
        seen = word not in (".", "?", ";") and (seen or place in reader.used or reader.at(place) is not None)
        zone.append(inside)
    return zone
