"""Checkpoints of a run, in its own folder or, with a lease, in PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, closing
from dataclasses import is_dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import ormsgpack
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)
from langgraph.checkpoint.serde.jsonplus import (
    EXT_CONSTRUCTOR_KW_ARGS,
    EXT_CONSTRUCTOR_POS_ARGS,
    JsonPlusSerializer,
)
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Send

from quorum.graph.resources import to_the_end
from quorum.graph.state import STATE_TYPES

if TYPE_CHECKING:
    from quorum.graph.leases import Lease

_OWN = frozenset(kind for kind in STATE_TYPES if is_dataclass(kind))

_OPTIONS = (
    ormsgpack.OPT_NON_STR_KEYS
    | ormsgpack.OPT_PASSTHROUGH_DATACLASS
    | ormsgpack.OPT_PASSTHROUGH_DATETIME
    | ormsgpack.OPT_PASSTHROUGH_ENUM
    | ormsgpack.OPT_PASSTHROUGH_UUID
    | ormsgpack.OPT_REPLACE_SURROGATES
)
"""LangGraph's."""

SOON = 0.01
"""Seconds until what a node wrote is stored, if its step has not ended: it waits for other nodes."""

_SENT = "__pregel_push"
"""In the path of a task that ``Send`` starts."""

_JOURNAL = slice(18, 20)
"""The header's bytes for how a file is written and read; 2 is WAL (sqlite.org/fileformat.html, 1.3.3)."""


class StateSerializer(JsonPlusSerializer):
    """LangGraph's serialiser, which writes the same bytes of a state's own types in a tenth of the time.

    LangGraph's tries twenty kinds of objects on each value before it takes it for a dataclass.
    """

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        if obj is None or isinstance(obj, bytes | bytearray):
            return super().dumps_typed(obj)
        try:
            return "msgpack", _packed(obj)
        except ormsgpack.MsgpackEncodeError:  # another type is in it
            return super().dumps_typed(obj)


def _packed(value: Any) -> bytes:
    return ormsgpack.packb(value, _extension, _OPTIONS)


def _extension(value: Any) -> ormsgpack.Ext:
    kind = type(value)
    if kind in _OWN:
        return ormsgpack.Ext(EXT_CONSTRUCTOR_KW_ARGS, _packed((kind.__module__, kind.__name__, vars(value))))
    if kind is Send:
        arguments = (value.node, value.arg)
        return ormsgpack.Ext(EXT_CONSTRUCTOR_POS_ARGS, _packed((kind.__module__, kind.__name__, arguments)))
    raise TypeError


class RunSaver(SqliteSaver):
    """LangGraph's SQLite saver for the one run of its file, from a coroutine.

    ``AsyncSqliteSaver`` hands each statement to a thread, a dozen times a step, which costs more
    than everything else Quorum does between two model calls. Here a step's write happens at
    once: it takes a tenth of a millisecond, and does not wait for the disk.
    """

    def __init__(self, connection: Any) -> None:
        super().__init__(connection, serde=serializer())
        connection.isolation_level = None
        self._held: dict[str, list[tuple[Any, ...]]] = {}

    def setup(self) -> None:
        """Set up the file; the log is moved into it when it is closed, as a power cut could leave half."""
        self.conn.execute("PRAGMA synchronous = OFF")
        self.conn.execute("PRAGMA wal_autocheckpoint = 0")
        super().setup()

    def cursor(self, transaction: bool = True) -> Any:  # noqa: ARG002 (its signature)
        """A cursor whose statements commit themselves: half the work of a transaction around one."""
        return closing(self.conn.cursor())

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return self.get_tuple(config)

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a step's state, which holds what its nodes wrote; an input is in the first step's."""
        namespace = config["configurable"]["checkpoint_ns"]
        self._held.pop(namespace, None)
        if metadata["source"] != "input":
            return self.put(config, checkpoint, metadata, new_versions)
        place = {"thread_id": config["configurable"]["thread_id"], "checkpoint_ns": namespace}
        return {"configurable": {**place, "checkpoint_id": checkpoint["id"]}}

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store what a node wrote, unless the step's state follows at once, as it does of a step's only node.

        It does not of nodes that ``Send`` starts, nor where a write to a channel of LangGraph's own (an
        interrupt, an error) keeps the step from ending. Where a step has several other nodes,
        it is stored ``SOON``.
        """
        namespace = config["configurable"]["checkpoint_ns"]
        self._held.setdefault(namespace, []).append((config, writes, task_id, task_path))
        if _SENT in task_path or any(channel in WRITES_IDX_MAP for channel, _ in writes):
            self._store(namespace)
        else:
            asyncio.get_running_loop().call_later(SOON, self._store, namespace)

    def _store(self, namespace: str) -> None:
        """Store what nodes wrote whose step has not ended, all of it or nothing."""
        if not (held := self._held.pop(namespace, ())):
            return
        self.conn.execute("BEGIN")
        try:
            for each in held:
                self.put_writes(*each)
            self.conn.execute("COMMIT")
        except BaseException:
            if self.conn.in_transaction:  # a full disk has ended it
                self.conn.execute("ROLLBACK")
            raise

    def store_held(self) -> None:
        """Store all that is held, before the file is closed."""
        for namespace in tuple(self._held):
            self._store(namespace)


@asynccontextmanager
async def open_checkpoints(path: Path, lease: Lease | None = None) -> AsyncIterator[BaseCheckpointSaver[str]]:
    """Open the saver over ``path``, which is made if need be, or that of a lease.

    Nothing waits for the disk: a killed process loses nothing, a power cut may lose the last steps or the
    file of a run that was just closed.
    """
    if lease is not None:
        yield lease.saver()
        return
    opening = cast("AbstractContextManager[RunSaver]", RunSaver.from_conn_string(str(path)))
    saver = await to_the_end(lambda: _opened(opening, path), lambda saver: saver.conn.close())
    try:
        yield saver
    finally:
        try:
            saver.store_held()
        finally:
            opening.__exit__(None, None, None)


async def has_checkpoint(path: Path, lease: Lease | None) -> bool:
    """True if a run has begun in the graph."""
    if lease is None:
        return path.exists()  # noqa: ASYNC240 - at once, as the saver writes
    config: RunnableConfig = {"configurable": {"thread_id": lease.run}}
    return await lease.saver().aget_tuple(config) is not None


def serializer() -> StateSerializer:
    """Return the serialiser of a run's checkpoints."""
    return StateSerializer(allowed_msgpack_modules=STATE_TYPES)


def _opened(opening: AbstractContextManager[RunSaver], path: Path) -> RunSaver:
    if not path.exists():
        path.write_bytes(_empty())
    saver = opening.__enter__()
    saver.setup()
    return saver


@cache
def _empty() -> bytes:
    """A database with the saver's empty tables: writing it is faster than creating them."""
    with SqliteSaver.from_conn_string(":memory:") as saver:
        saver.setup()
        image = bytearray(saver.conn.serialize())
    image[_JOURNAL] = b"\x02\x02"
    return bytes(image)
