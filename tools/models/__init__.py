"""The one way to a chat model: ``make_model("provider:name")`` and ``Model.complete``.

Importing this package loads neither LangChain nor a provider's client; making a model does.
"""

from __future__ import annotations

from quorum.tools.models.backend import Message, ModelSettings
from quorum.tools.models.model import Model
from quorum.tools.models.prices import PRICES_AS_OF, Price
from quorum.tools.models.providers import check_priced, make_model, make_models
from quorum.tools.models.replies import Reply
from quorum.tools.models.structured import Method, Problem, ProblemKind

__all__ = [
    "PRICES_AS_OF",
    "Message",
    "Method",
    "Model",
    "ModelSettings",
    "Price",
    "Problem",
    "ProblemKind",
    "Reply",
    "check_priced",
    "make_model",
    "make_models",
]
