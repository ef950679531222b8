"""The expert ledger: the paper's updates, many writers, damaged files, bounds."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import pytest

from quorum.knowledge.errors import ConfigurationError
from quorum.tools.experts import ExpertLedger, best_epsilon, bounds


@pytest.fixture
def ledger(tmp_path: Path) -> ExpertLedger:
    return ExpertLedger(tmp_path / "home" / "experts.json")


def test_a_mistake_costs_one_minus_epsilon(ledger: ExpertLedger) -> None:
    assert ledger.weights(["a", "b"]) == {"a": 1.0, "b": 1.0}
    assert not ledger.path.exists()
    ledger.update({"a": True, "b": False}, feedback="gold", epsilon=0.25)
    assert ledger.weights(["a", "b", "new"]) == {"a": 1.0, "b": 0.75, "new": 1.0}
    ledger.update({"a": True, "b": False}, feedback="gold", epsilon=0.25, vote=False)
    assert ledger.weights(["b"]) == {"b": 0.75**2}
    ledger.update({"a": False, "b": True}, feedback="user", epsilon=0.25, vote=True)
    assert ledger.weights(["a", "b"])["b"] == pytest.approx(0.75)  # only the ratio counts
    book = ledger.read()
    assert book.feedback == {"gold": 2, "user": 1}
    assert (book.experts["b"].mistakes, book.experts["b"].rounds) == (2, 3)
    assert (book.rounds, book.votes, book.vote_mistakes) == (3, 2, 1), "the vote's outcome where it is known"


def test_the_default_epsilon_is_the_papers(ledger: ExpertLedger) -> None:
    assert best_epsilon(3, 500) == pytest.approx(math.sqrt(math.log(3) / 500))
    assert best_epsilon(1, 500) == 0.0
    assert best_epsilon(3, 4) == pytest.approx(math.sqrt(math.log(3) / 4))
    assert best_epsilon(1000, 1) == 1.0
    ledger.update({"a": True, "b": False}, feedback="execution")
    assert ledger.weights(["b"])["b"] == pytest.approx(1 - best_epsilon(2, 64))


def test_a_t_that_is_not_known_is_doubled_and_the_weights_stay(ledger: ExpertLedger) -> None:
    right, wrong = {"a": True, "b": True}, {"a": True, "b": False}
    ledger.update(wrong, *[right] * 63, feedback="user")
    first = ledger.weights("b")["b"]
    assert first == pytest.approx(1 - best_epsilon(2, 64))
    ledger.update(wrong, feedback="user")
    assert ledger.weights("b")["b"] == pytest.approx(first * (1 - best_epsilon(2, 128)))


def test_the_worst_expert_can_come_back(ledger: ExpertLedger) -> None:
    for _ in range(40):
        ledger.update({"a": True, "b": False}, feedback="gold", epsilon=0.5)
    assert ledger.weights(["b"])["b"] > 0
    for _ in range(40):
        ledger.update({"a": False, "b": True}, feedback="gold", epsilon=0.5)
    assert ledger.weights(["a", "b"]) == pytest.approx({"a": 1.0, "b": 1.0}), "as many mistakes each"
    ledger.update(*[{"a": False, "b": True}] * 2000, {"new": True}, feedback="gold", epsilon=0.5)
    assert ledger.weights(["b", "new"]) == {"b": 1.0, "new": 1.0}, "a newcomer starts level with the best"
    assert ledger.weights(["a"])["a"] > 0
    assert ledger.update({"z": False, "b": True}, feedback="gold", epsilon=0.9)["z"] == 0.5, "at most half"


@pytest.mark.parametrize("content", ["", '{"version": 3}', '{"experts": {"a": {"weight": -1}}}'])
def test_a_damaged_file_is_reported_and_kept(ledger: ExpertLedger, content: str) -> None:
    ledger.path.parent.mkdir()
    ledger.path.write_text(content)
    with pytest.raises(ConfigurationError, match=r"experts\.json cannot be read .* move it away"):
        ledger.weights(["a"])
    with pytest.raises(ConfigurationError):
        ledger.update({"a": True}, feedback="gold")
    assert ledger.path.read_text() == content


WRITER = """
import sys
from pathlib import Path
from quorum.tools.experts import ExpertLedger
ledger = ExpertLedger(Path(sys.argv[1]))
for _ in range(10):
    outcomes = {"right": True, "wrong": False, sys.argv[2]: True}
    ledger.update(outcomes, feedback="gold", vote=True, epsilon=0.01)
"""


@pytest.mark.heavy
def test_sixteen_processes_lose_no_update(ledger: ExpertLedger, root: Path) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(ledger.path), f"w{number}"], cwd=root)
        for number in range(16)
    ]
    assert [writer.wait(timeout=100) for writer in writers] == [0] * 16
    scope = ledger.read()
    assert (scope.rounds, scope.votes, scope.feedback) == (160, 160, {"gold": 160})
    assert scope.experts["wrong"].mistakes == 160
    assert scope.experts["wrong"].weight == pytest.approx(0.99**160)
    assert {scope.experts[f"w{number}"].rounds for number in range(16)} == {10}
    assert sorted(path.name for path in ledger.path.parent.iterdir()) == ["experts.json", "experts.json.lock"]


def test_bounds_are_the_algorithms() -> None:
    """Littlestone and Warmuth's for Algorithm 1, and Algorithm 2, step 5, as printed."""
    found = bounds(4, 50, 9, 3, 0.1)
    assert found.wma == pytest.approx(2 * 1.1 * 3 + 2 * math.log(4) / 0.1)
    assert found.rwma == pytest.approx(1.1 * 3 + math.log(4) / 0.1)
    assert found.regret == 6 / 50
