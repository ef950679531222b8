"""The folder of an evaluation survives crashes, and says what is wrong with it."""

from __future__ import annotations

import io
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quorum.evals.folder import MANIFEST, RESULTS, EvalFolder, EvalWriter
from quorum.evals.records import CandidateRow, Linking, Manifest, Record
from quorum.knowledge.errors import ConfigurationError
from tests.evals.evaluations import asked, manifest, record


def written(folder: Path, *records: Record) -> Path:
    with EvalWriter(folder) as writer:
        writer.begin(manifest([asked("a"), asked("b")]))
        for each in records:
            writer.add(each)
    return folder / RESULTS


def test_what_was_written_is_read_and_the_last_line_of_a_question_counts(tmp_path: Path) -> None:
    full = record(
        "a",
        sql="SELECT '\ud800\u2028\r\n'",
        candidates=(CandidateRow("c1", "m", "SELECT 1", True),),
        linking=Linking(1.0, None, 0.5, 0.25),
        metrics={"ex": 1.0, "points": None},
        vote={"winner": "c1"},
    )
    written(tmp_path, record("a", error="endpoint", status="failed"), record("b"), full)
    folder = EvalFolder(tmp_path)
    assert list(folder.records().items()) == [("b", record("b")), ("a", full)], "the last line counts"
    assert folder.manifest() == manifest([asked("a"), asked("b")])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(cut=st.integers(min_value=0, max_value=5_000))
def test_a_line_that_was_cut_is_as_if_it_had_not_been_begun(tmp_path: Path, cut: int) -> None:
    path = written(tmp_path, record("a"), record("b"))
    data = path.read_bytes()
    path.write_bytes(data[:cut])
    whole = data[:cut].count(b"\n")
    assert list(EvalFolder(tmp_path).records()) == ["a", "b"][:whole]
    with EvalWriter(tmp_path) as writer:
        writer.add(record("c"))
    assert list(EvalFolder(tmp_path).records()) == [*["a", "b"][:whole], "c"]
    path.unlink()


@pytest.mark.parametrize("line", [b"", b"{}", b"[]", b"nothing", b'{"id": "a"}', b"\xff\xfe", b"\0\0\0"])
def test_a_damaged_line_is_named(tmp_path: Path, line: bytes) -> None:
    path = written(tmp_path, record("a"))
    path.write_bytes(path.read_bytes() + line + b"\n")
    with pytest.raises(ConfigurationError, match=r"Line 2 of .*results\.jsonl is no record"):
        EvalFolder(tmp_path).records()


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"asked": [{}]}'])
def test_a_damaged_manifest_is_named(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigurationError, match="holds no evaluation"):
        EvalFolder(tmp_path / "nothing").manifest()
    assert EvalFolder(tmp_path / "nothing").records() == {}
    written(tmp_path)
    (tmp_path / MANIFEST).write_text(text)
    with pytest.raises(ConfigurationError, match=r"eval\.json is damaged"):
        EvalFolder(tmp_path).manifest()


def test_lines_and_manifests_of_other_versions_are_read(tmp_path: Path) -> None:
    path = written(tmp_path)
    line = {**asdict(record("a")), "of_tomorrow": 1}
    del line["truncated"]  # which earlier ones did not keep
    path.write_text(json.dumps(line) + "\n")
    values = asdict(manifest([asked("a")]))
    (tmp_path / MANIFEST).write_text(json.dumps({**values, "of_tomorrow": 1}))
    assert EvalFolder(tmp_path).records() == {"a": record("a")}
    assert EvalFolder(tmp_path).manifest() == Manifest.from_dict(values)


def test_a_folder_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    with EvalWriter(tmp_path), pytest.raises(ConfigurationError, match="Another process is writing"):
        EvalWriter(tmp_path).__enter__()
    with EvalWriter(tmp_path):
        (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="Cannot write to"):
        EvalWriter(tmp_path / "file" / "out").__enter__()


def test_a_full_disk_leaves_no_half_line(tmp_path: Path) -> None:
    class Full(io.FileIO):
        def write(self, data: Any) -> int:
            if len(data) <= 10:
                raise OSError(28, "No space left on device")
            return super().write(data[:-10])

    path = written(tmp_path, record("a"))
    before = path.read_bytes()
    with EvalWriter(tmp_path) as writer:
        writer._file.close()
        writer._file = Full(path, "a+")
        with pytest.raises(ConfigurationError, match="No space left"):
            writer.add(record("b"))
    assert path.read_bytes() == before
