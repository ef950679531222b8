"""Embedding models: an endpoint that misbehaves ends in vectors or one clear error; no text is sent twice."""

from __future__ import annotations

import hashlib
import logging
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from pydantic import SecretStr

from quorum.graph.options import RunOptions
from quorum.graph.resources import open_embedder
from quorum.knowledge.errors import ConfigurationError, ModelUnavailable
from quorum.knowledge.search.index import SentenceTransformerEmbedder, TextIndex
from quorum.tools.models import ModelSettings
from quorum.tools.models.embeddings import CachedEmbedder, OpenAIEmbedder
from tests.knowledge.letters import Letters
from tests.servers.chat_server import Answer, ChatServer, Request, Script, status

SECRET = "sk-very-secret-key-0123456789"


def vectors(request: Request, dimensions: int = 4) -> Answer:
    """A vector a text, made from its hash and not of length 1; the last text's first, as an endpoint may."""
    data = [
        {"index": i, "embedding": [float(b) + 1 for b in hashlib.sha256(t.encode()).digest()[:dimensions]]}
        for i, t in enumerate(request.body["input"])
    ]
    return Answer({"data": data[::-1]})


def embedder(server: ChatServer, **changes: Any) -> OpenAIEmbedder:
    given = {"base_url": server.url, "api_key": SecretStr(SECRET), "timeout": 5.0, "max_retries": 2}
    return OpenAIEmbedder("small", ModelSettings(**(given | changes)))


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that the client would wait between its tries."""
    waited: list[float] = []
    fake = SimpleNamespace(**vars(time) | {"sleep": waited.append})
    monkeypatch.setattr("openai._base_client.time", fake)
    return waited


def test_vectors_come_in_the_order_of_the_texts_and_have_length_1() -> None:
    with ChatServer(vectors) as server:
        made = embedder(server).encode(["a", "b", ""])
        again = embedder(server).encode(["b"])
    assert (made.shape, made.dtype) == ((3, 4), np.float32)
    assert np.linalg.norm(made, axis=1) == pytest.approx([1, 1, 1])
    assert made[1] == pytest.approx(again[0])
    first = server.requests[0]
    assert (first.path, first.body) == ("/v1/embeddings", {"model": "small", "input": ["a", "b", " "]})
    assert first.headers["authorization"] == f"Bearer {SECRET}"


def test_what_may_pass_is_asked_again(waits: list[float]) -> None:
    busy = status(429, "slow down", headers={"Retry-After": "3"})
    answers = iter([busy, status(500)])
    with ChatServer(lambda request: next(answers, None) or vectors(request)) as server:
        assert embedder(server).encode(["a"]).shape == (1, 4)
    assert len(server.requests) == 3
    assert (len(waits), waits[0]) == (2, 3.0)


def reply(*embeddings: Any) -> Answer:
    return Answer({"data": [{"index": i, "embedding": e} for i, e in enumerate(embeddings)]})


@pytest.mark.parametrize(
    ("script", "said", "requests"),
    [
        ([status(401, f"Incorrect API key provided: {SECRET}")], "Is the API key right", 1),
        ([status(503, "overloaded")], "overloaded", 3),
        ([Answer({"choices": []})], "no list of embeddings: KeyError, 'data'", 1),
        ([reply([1, 2])], "1 vectors for 2 texts", 1),
        ([reply([1, 2], [1, 2, 3])], "differ in their dimensions", 1),
        ([reply([0, 0], [1, 2])], "have no length", 1),
        ([Answer(status=302, headers={"Location": "http://elsewhere.test/"})], "elsewhere.test", 1),
    ],
)
def test_what_is_no_embedding_is_one_clear_error(script: Script, said: str, requests: int) -> None:
    with ChatServer(script) as server:
        model = embedder(server)
        with pytest.raises(ModelUnavailable) as raised:
            model.encode(["a", "b"])
    assert said in str(raised.value)
    assert "openai:small gave no vectors" in str(raised.value)
    assert SECRET not in str(raised.value)
    assert len(server.requests) == requests


def test_options_name_the_model(tmp_path: Path) -> None:
    named = {"database": "sample", "home": str(tmp_path)}
    assert open_embedder(RunOptions.from_dict(named)) is None
    with pytest.raises(ConfigurationError, match="needs an API key"):
        open_embedder(RunOptions.from_dict(named | {"embedding_model": "openai:small"}))
    with ChatServer(vectors) as server:
        options = RunOptions.from_dict(named | {"embedding_model": "openai:small", "base_url": server.url})
        made = open_embedder(options, api_key=SECRET)
        assert made.encode(["a"]).shape == (1, 4)
    local = open_embedder(RunOptions.from_dict(named | {"embedding_model": "some/model"}))
    assert local.name == SentenceTransformerEmbedder("some/model").name


def test_no_text_is_sent_twice(tmp_path: Path) -> None:
    pytest.importorskip("faiss", reason="the extra quorum-sql[embeddings] is not installed")
    texts = [f"text {n % 7}" for n in range(10)]
    with ChatServer(vectors) as server:
        inner = embedder(server)
        first = CachedEmbedder(inner, tmp_path / "e.sqlite", 3)
        TextIndex(texts).build(first)
        assert [len(request.body["input"]) for request in server.requests] == [3, 3, 1]
        second = CachedEmbedder(inner, tmp_path / "e.sqlite", 3)
        TextIndex(texts[::-1]).build(second)
        assert len(server.requests) == 3
        assert (second.encode(texts) == first.encode(texts)).all()
        assert second.encode([]).shape[0] == 0
        assert len(server.requests) == 3
    other = Letters()
    CachedEmbedder(other, tmp_path / "e.sqlite").encode(["text 3"])
    assert other.asked == [["text 3"]], "models share no vectors"
    kept = (tmp_path / "e.sqlite").read_bytes()
    assert SECRET.encode() not in kept
    assert b"text 3" not in kept


def test_what_was_embedded_before_an_error_is_kept(tmp_path: Path) -> None:
    answers = iter([None, status(401)])
    with ChatServer(lambda request: next(answers, None) or vectors(request)) as server:
        model = CachedEmbedder(embedder(server), tmp_path / "e.sqlite", 2)
        with pytest.raises(ModelUnavailable):
            model.encode(["a", "b", "c"])
        model.encode(["a", "b", "c"])
    assert [request.body["input"] for request in server.requests] == [["a", "b"], ["c"], ["c"]]


def test_another_dimension_is_refused(tmp_path: Path) -> None:
    CachedEmbedder(Letters(dimensions=3), tmp_path / "e.sqlite").encode(["a"])
    with pytest.raises(ConfigurationError, match=r"letters gives vectors of 3 and 5 dimensions.*delete"):
        CachedEmbedder(Letters(dimensions=5), tmp_path / "e.sqlite").encode(["a", "b"])
    assert CachedEmbedder(Letters(dimensions=3), tmp_path / "e.sqlite").encode(["a", "b"]).shape == (2, 3)


def test_a_damaged_cache_is_set_aside(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path, content = tmp_path / "e.sqlite", b"this is no database" * 50
    path.write_bytes(content)
    with caplog.at_level(logging.WARNING):
        CachedEmbedder(Letters(), path).encode(["a"])
    assert "was damaged" in caplog.text
    assert (tmp_path / "e.damaged").read_bytes() == content
    again = Letters()
    CachedEmbedder(again, path).encode(["a"])
    assert again.asked == []
