"""A chat model that repeats recorded replies, by role, candidate and turn.

A run's ``events.jsonl`` is such a recording: its ``model_call`` events hold all that is needed.
Other lines are skipped; a line without ``kind`` counts as a model call, so a recording can also be
written by hand: ``{"agent": "writer", "reply": "…"}``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.messages.ai import InputTokenDetails, UsageMetadata

from quorum.knowledge.errors import ConfigurationError
from quorum.tools.models.base import Backend, ModelSettings
from quorum.tools.models.scripted import ScriptedChatModel, scripted_backend
from quorum.tools.record import BLOB, stored_text


def replay(name: str, settings: ModelSettings) -> Backend:
    """The backend that repeats the recording in a file.

    Raises:
        ConfigurationError: The file is missing, is not JSONL, or holds no reply.
    """
    try:
        lines = Path(name).read_text(encoding="utf-8").split("\n")
        events = [json.loads(line) for line in lines if line.strip()]
        script = recorded(events, Path(name).parent)
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"The recording {name!r} cannot be read: {error}",
            hint="Write replay:FILE with the events.jsonl of a run.",
        ) from error
    if not script:
        raise ConfigurationError(f"The recording {name!r} holds no reply of a model.")
    backend = scripted_backend(ScriptedChatModel(script=script, source=f"replay:{name}"), settings)
    backend.demonstration = any(str(event.get("model", "")).startswith("offline") for event in events)
    return backend


def recorded(events: Iterable[Mapping[str, Any]], folder: Path) -> dict[str, list[AIMessage]]:
    """The replies among the events as a script: by ``role/candidate``, or by role alone.

    Args:
        folder: The run's; long replies lie in its ``blobs``, named by their SHA-256.
    """
    script: dict[str, list[AIMessage]] = {}
    for event in events:
        if event.get("kind", "model_call") != "model_call" or "reply" not in event:
            continue
        candidate = event.get("candidate")
        key = str(event.get("agent", "")) + ("" if candidate is None else f"/{candidate}")
        script.setdefault(key, []).append(_message(event, _text(event["reply"], folder)))
    return script


def _text(reply: Any, folder: Path) -> str:
    if isinstance(reply, Mapping) and BLOB in reply:
        return stored_text(folder, reply[BLOB])
    return reply if isinstance(reply, str) else json.dumps(reply, ensure_ascii=False)


def _message(event: Mapping[str, Any], reply: str) -> AIMessage:
    metadata = {"finish_reason": event.get("finish_reason") or "stop"}
    usage = event.get("usage")
    if not usage:
        return AIMessage(reply, response_metadata=metadata)
    spent, got = int(usage.get("input_tokens", 0)), int(usage.get("output_tokens", 0))
    counts = UsageMetadata(
        input_tokens=spent,
        output_tokens=got,
        total_tokens=spent + got,
        input_token_details=InputTokenDetails(cache_read=int(usage.get("cached_tokens", 0))),
    )
    return AIMessage(reply, response_metadata=metadata, usage_metadata=counts)
