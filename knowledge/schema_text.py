"""Schema text: how a catalog is written for a language model, and how it is read back.

``quorum.knowledge.compress.render`` writes this text, ``parse_schema`` is its inverse. An example::

    # database shop (sqlite): 4 tables, 11 columns
    # One column a line, "name TYPE"; "a, b TYPE": both have that type. PK: primary key.
    # (then one line for each further mark that the text uses)

    table customers (1,200 rows) -- people who have bought
      id INTEGER PK
      first_name, last_name TEXT NOT NULL
      city TEXT [Ghent, Lund]
      status TEXT [all: active, closed]
      fax TEXT [NULL only]

    tables sales_{20240101..20240131} (31 tables; rows 10, 12, ...)
      id INTEGER PK
      customer_id INTEGER -> customers.id
      total "DECIMAL [x]" -- what was paid
      extra JSON
        ~items[].sku, note string

    table archive like sales_20240101
      - total
      + note TEXT

    # left out: 2 of 9 descriptions

The text is made of lines; blank lines separate blocks, lines that start with ``#`` are for the
reader (the first one names the database and its dialect, ``# note: ...`` are the catalog's notes,
``# left out: ...`` says what detail did not fit).

Names
    A name is bare when it consists of letters, digits, ``_`` and ``$`` (``-`` may stand inside);
    anything else stands in double quotes, a quote inside doubled, with ``\\n``, ``\\r``, ``\\t``,
    ``\\\\`` and ``\\uXXXX`` escapes. The case is the catalog's. A table's full name is its parts
    joined by dots: ``database.schema.name``.

Block header
    ``table NAME`` or ``tables MEMBERS``; then optionally, in this order, ``(FACTS)``,
    ``like BASE``, ``-- description``.
    MEMBERS is one or more lists ``QUALIFIER: item, item`` joined by ``; `` (without
    ``QUALIFIER: `` where the engine has no schemas). An item is a name or ``prefix{1..3, 7}suffix``,
    that stands for every value in the braces. Both ends of a range have the same number of digits
    (zeros kept); where both are eight digits and valid calendar dates, the range runs over days.
    FACTS are joined by ``; ``: the kind when it is not a table (``view``), the number of tables,
    ``12,345 rows``; or for several tables ``rows 5, 7, ?`` in the members' order
    (``rows 5 each`` when all agree).
    All tables of one header have the same columns (a shared field group); their columns may stand
    in another order than in the text, and samples are those of one of them. ``like BASE``: the
    columns (and samples) of the table BASE, which has its
    own block, without those in ``- `` lines and with those in ``+ `` lines added at the end, or
    replacing the column of that name in its place.

Body lines, indented by two spaces
    ``name[, name...] TYPE [PK] [NOT NULL] [-> table.column] [[samples]] [-- description]``
    TYPE is the engine's own words; in double quotes when empty or when it could be misread.
    SAMPLES are separated by ``, ``; a value is in double quotes (same escapes as names) when it
    holds a comma, a bracket, a quote, or outer blanks. A value or description that was cut ends in ``…``.
    ``[all: SAMPLES]``: the column has no other values but NULL, in every table of the block and in
    those that are ``like`` it; a value that begins so is quoted. ``[NULL only]``: rows were read and
    none has a value. Nothing of the kind is said of a list that was cut.
    ``--^`` instead of a description: the same as the last one given above for a column (or nested
    path) of that name.
    ``primary key (b, a)`` where the order is not the columns';
    ``foreign key (a, b) -> table (x, y)`` where it has several columns, or one column has several.
    ``-- NAME: description`` describes one member of a group.
    ``(columns unknown)`` stands for a table whose columns no source told.

Nested paths, indented by four spaces below their column, ``path[, path...] TYPE [-- description]``
    ``column.a.b``: a declared path, spelt from the column's name on; that a part is repeated is
    seen from the type of its parent (``ARRAY<...>``). A parent that is a plain STRUCT without
    description is not repeated on a line of its own.
    ``.path``: a declared path relative to the column, where the form above would not say it exactly.
    ``~path``: a path seen in sample values, relative to the column: ``[]`` is any element of an
    array, ``*`` any key of a map whose keys are data.
    ``STRUCT`` or ``ARRAY<STRUCT>`` as the type of a column or path in the first form stands for
    the structure of the paths below it.
"""

from __future__ import annotations

from quorum.knowledge.catalog import Catalog
from quorum.knowledge.schema_grammar import SchemaTextError
from quorum.knowledge.schema_reader import read_schema

__all__ = ["SchemaTextError", "parse_schema"]


def parse_schema(text: str) -> Catalog:
    """Read schema text back into a catalog: the inverse of ``quorum.knowledge.compress.render``.

    Every table, column name, type, nested path, key and row count comes back exactly. Tables come
    in the text's order; members of a group all get the columns, descriptions, samples and inferred
    paths that the text gives for the group. Descriptions and samples are as (cut as) the text has
    them.

    Raises:
        SchemaTextError: A line does not follow the format; the message quotes it.
    """
    return read_schema(text)
