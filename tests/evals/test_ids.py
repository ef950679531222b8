"""Files of ids."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorum.evals.questions import is_id, read_ids
from quorum.graph.trace import Trace
from quorum.knowledge.errors import ConfigurationError


@pytest.mark.parametrize(
    ("text", "may"),
    [
        ("q.1_a-B", True),
        ("x" * 81, True),
        ("x" * 82, False),
        ("_a", False),
        (".a", False),
        ("a/b", False),
        ("a\n", False),
        ("", False),
    ],
)
def test_an_id_is_what_may_name_a_run(tmp_path: Path, text: str, may: bool) -> None:
    assert is_id(text) is may
    if may:
        Trace.create(tmp_path, text).close()
    elif text:
        with pytest.raises(ConfigurationError, match="cannot name a run"):
            Trace.create(tmp_path, text)


def test_one_id_a_line_each_once_without_blanks_and_comments(tmp_path: Path) -> None:
    file = tmp_path / "ids.txt"
    file.write_bytes("\ufeffq2\r\n\n# not these\n  q1 \n#q9\nq2\n".encode())
    assert read_ids(file) == ("q2", "q1")


@pytest.mark.parametrize("content", [b"", b"# none\n\n", b"\xff\xfe", None])
def test_a_file_that_names_nothing_is_refused(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "ids.txt").write_bytes(content)
    with pytest.raises(ConfigurationError, match=r"ids\.txt"):
        read_ids(tmp_path / "ids.txt")
