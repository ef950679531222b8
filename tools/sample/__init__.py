"""The sample database: an online shop to try Quorum on, with documents that define its terms."""

from __future__ import annotations

from quorum.tools.sample.build import build_sample, sample_database, sample_documents
from quorum.tools.sample.questions import DEMO_QUESTIONS, SampleQuestion

__all__ = ["DEMO_QUESTIONS", "SampleQuestion", "build_sample", "sample_database", "sample_documents"]
