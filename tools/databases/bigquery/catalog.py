"""A project's datasets as a catalog, out of metadata alone: nothing of it is billed.

``tables.list`` and ``tables.get`` cost nothing, where INFORMATION_SCHEMA is charged by query; row counts
stand in the metadata, and ``tabledata.list`` gives sample rows. Of tables that are shards (one name, other
digits) the newest is asked; the others are told alike.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from quorum.knowledge.catalog import Catalog, Column, Field, ForeignKey, Table
from quorum.tools.databases.arrow import texts
from quorum.tools.databases.bigquery.errors import client_errors, failure
from quorum.tools.databases.bigquery.session import type_name
from quorum.tools.databases.introspection import CATALOG_SECONDS, TEXT_CHARACTERS, UNSAMPLED, Introspection
from quorum.tools.databases.server import Refusal

if TYPE_CHECKING:
    from google.cloud.bigquery import Client

    from quorum.tools.databases.bigquery.connector import BigqueryConnector

AT_ONCE = 8
"""Calls of the API at the same time."""
ROWS = 200
"""Sample rows of a table."""
SHARD = re.compile(r"(.*?_?)(\d{8}|\d{6}|\d{4})")
KINDS = {
    "TABLE": "table",
    "VIEW": "view",
    "MATERIALIZED_VIEW": "materialized view",
    "EXTERNAL": "external table",
}


async def introspect(connector: BigqueryConnector, *, samples: int = 3) -> Catalog:
    """See ``Connector.catalog``."""
    look = Introspection(connector, connector.run)
    client, slots = connector.client, asyncio.Semaphore(AT_ONCE)

    async def one(group: list[Any]) -> list[Table]:
        async with slots:
            return await asyncio.to_thread(_tables, client, look, group, samples)

    try:
        project, places = connector.target.project, connector.target.places
        if not places:
            found = await asyncio.to_thread(lambda: list(client.list_datasets(project)))
            places = tuple((project, item.dataset_id) for item in found)
        listed = await asyncio.gather(
            *(asyncio.to_thread(_listed, connector, client, *place) for place in places)
        )
        groups = [group for found in listed for group in _shards(found)]
        tables = [table for found in await asyncio.gather(*map(one, groups)) for table in found]
    except client_errors() as error:
        raise connector.unreachable(failure(error)) from None
    if not tables and look.left_out:
        place, found = next((place, found) for place, found in zip(places, listed, strict=True) if found)
        why = Refusal("accessDenied", look.left_out[0])
        raise await asyncio.to_thread(connector.missing_right, client, *place, why, len(found))
    return look.catalog(tables)


def _listed(connector: BigqueryConnector, client: Client, project: str, dataset: str) -> list[Any]:
    from google.api_core.exceptions import Forbidden

    try:
        return list(client.list_tables(f"{project}.{dataset}"))
    except Forbidden as error:
        raise connector.missing_right(client, project, dataset, failure(error)) from None


def _shards(listed: Sequence[Any]) -> Iterator[list[Any]]:
    """Tables apart, and together those that are shards of one; the newest last."""
    groups: dict[str, list[Any]] = defaultdict(list)
    for item in listed:
        found = SHARD.fullmatch(item.table_id)
        groups[f"{found[1]}*" if found else item.table_id].append(item)
    for items in groups.values():
        yield sorted(items, key=lambda item: str(item.table_id))


def _tables(client: Client, look: Introspection, group: list[Any], samples: int) -> list[Table]:
    """One table, or shards that are told after their newest."""
    from google.api_core.exceptions import Forbidden, NotFound

    *others, newest = group
    try:
        found = client.get_table(newest.reference)
        table = _with_rows(client, look, found, _table(found), samples)
    except (Forbidden, NotFound) as error:
        look.leave_out("table", newest.full_table_id, str(failure(error)))
        return []
    bare = tuple(replace(column, samples=(), cells=(), complete=False) for column in table.columns)
    return [
        *(
            replace(table, name=item.table_id, columns=bare, row_count=None, distinct_rows=None)
            for item in others
        ),
        table,
    ]


def _table(found: Any) -> Table:
    constraints = found.table_constraints
    primary = constraints.primary_key.columns if constraints and constraints.primary_key else ()
    foreign = constraints.foreign_keys or () if constraints else ()
    return Table(
        name=found.table_id,
        columns=tuple(_column(field) for field in found.schema),
        schema=found.dataset_id,
        database=found.project,
        kind=KINDS.get(found.table_type, "table"),
        description=" ".join(filter(None, (found.description, *_storage(found)))),
        row_count=found.num_rows if found.table_type == "TABLE" else None,
        primary_key=tuple(primary),
        foreign_keys=tuple(
            ForeignKey(
                tuple(each.referencing_column for each in key.column_references),
                f"{key.referenced_table.project}.{key.referenced_table.dataset_id}.{key.referenced_table.table_id}",
                tuple(each.referenced_column for each in key.column_references),
            )
            for key in foreign
        ),
    )


def _storage(found: Any) -> Iterator[str]:
    """Yield sentences on partitions and clustering, which decide what reading the table costs."""
    column = ""
    if found.time_partitioning is not None:
        column = found.time_partitioning.field or "_PARTITIONTIME"
        yield f"Partitioned by {found.time_partitioning.type_.lower()} of {column}."
    elif found.range_partitioning is not None:
        column = found.range_partitioning.field
        yield f"Partitioned by ranges of {column}."
    if found.require_partition_filter:
        yield f"Each query must filter by {column or 'its partition column'}."
    if found.clustering_fields:
        yield f"Clustered by {', '.join(found.clustering_fields)}."


def _column(field: Any) -> Column:
    mark = "[]" if field.mode == "REPEATED" else ""
    return Column(
        field.name,
        type_name(field),
        description=field.description or "",
        fields=tuple(_fields(field.fields, mark)),
        nullable=field.mode != "REQUIRED",
    )


def _fields(fields: Sequence[Any], above: str) -> Iterator[Field]:
    for field in fields:
        path = f"{above}.{field.name}" if above else field.name
        path += "[]" if field.mode == "REPEATED" else ""
        if field.fields:
            yield from _fields(field.fields, path)
        else:
            yield Field(path, type_name(field), description=field.description or "")


def _with_rows(client: Client, look: Introspection, found: Any, table: Table, samples: int) -> Table:
    """The table with sample values; views have none, for reading them is billed."""
    late = time.monotonic() > look.started + CATALOG_SECONDS
    if found.table_type != "TABLE" or late or samples == 0:
        if samples:
            look.lack(UNSAMPLED, table)
        return table
    rows = client.list_rows(found, max_results=ROWS + 1).to_arrow(create_bqstorage_client=False)
    values = [list(texts(column.to_pylist(), TEXT_CHARACTERS)) for column in rows.columns]
    whole = rows.num_rows == found.num_rows
    return look.filled_once(table, values, samples, whole=whole)
