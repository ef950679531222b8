"""What one question needs: it is checked, its graph is loaded, a run may go on, a choice is kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from quorum.answer import Answer
from quorum.graph.answer import Answer as _Answer
from quorum.graph.runs import RunFolder
from quorum.knowledge.errors import ConfigurationError
from quorum.settings import Settings, resumed_options

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from quorum.graph.answering import OnApprove, OnClarify
    from quorum.graph.options import RunOptions
    from quorum.graph.recipes.recipe import Recipe


def resumed(run: str, settings: Settings, question: str) -> tuple[RunFolder, Answer | None, str, RunOptions]:
    """Return a run's folder, its answer if it has ended, its question and its options.

    Raises:
        ConfigurationError: There is no such run, or it cannot go on as asked.
    """
    if question.strip():
        raise ConfigurationError("A run that goes on has its own question.", hint="Leave yours out.")
    folder = RunFolder.open(settings.home, run)
    meta = folder.meta()
    home = folder.folder.absolute().parents[1]  # a batch's, where its run was named by the path
    options = resumed_options(meta, settings).model_copy(update={"home": home})
    answer = folder.answer()
    return folder, Answer.of(answer) if answer else None, str(meta["question"]), options


def load_graph(options: RunOptions) -> Recipe:
    """Import the graph, which takes as long as all else that a run opens; return its recipe."""
    from quorum.graph.recipes import recipe_of
    from quorum.graph.resources import IMPORTING

    with IMPORTING:
        import quorum.graph.answering  # noqa: F401

        return recipe_of(options)


def keep_convention(answer: _Answer, settings: Settings) -> None:
    """Keep the reading that the user chose as a note of the knowledge base; a warning where it cannot be."""
    from quorum import teaching

    try:
        answer.convention = str(teaching.keep_convention(answer, settings))
    except ConfigurationError as error:
        answer.warnings.append(f"The reading that you chose was not kept: {error}")


def check_askable(
    question: str,
    options: RunOptions,
    own: Mapping[str, BaseChatModel],
    on_clarify: OnClarify | None,
    on_approve: OnApprove | None,
) -> None:
    """Check what a question is asked with.

    Raises:
        ConfigurationError: It is no text, a model of the caller's is unknown, or there is nobody to ask back.
    """
    if not isinstance(question, str):
        raise ConfigurationError(f"The question is {type(question).__name__}, not text.")
    try:
        question.encode()
    except UnicodeEncodeError as error:
        raise ConfigurationError(
            f"The question is not UTF-8 text, from character {error.start + 1} on.",
            hint="Convert it, e.g. with iconv, or set the terminal to UTF-8.",
        ) from error
    if not question.strip():
        raise ConfigurationError("The question is empty.")
    if strangers := set(own) - set(options.specs):
        raise ConfigurationError(
            f"chat_models has {', '.join(sorted(strangers))}, which is not among the models.",
            hint=f"The models are: {', '.join(options.specs)}.",
        )
    if options.clarify != "off" and on_clarify is None:
        raise ConfigurationError(
            "The run may ask back which answer is meant, and there is nobody to ask.",
            hint="Pass on_clarify, ask on a terminal, or leave clarify out.",
        )
    if options.approve != "never" and on_approve is None:
        raise ConfigurationError(
            f"The run asks before queries run (approve={options.approve}), and there is nobody to ask.",
            hint="Pass on_approve, ask on a terminal, or set approve to never.",
        )
