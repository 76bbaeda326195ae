"""Writing documents anew from their kept texts."""

from collections.abc import Sequence

from haystack import Pipeline

from components.ingest.document import Revision
from components.ingest.reconcile import Rewrite

_STEPS = ("splitter", "enricher", "writer")
"""The steps of the ingest pipeline that follow once it is known what a document says."""


def rewriter(pipeline: Pipeline) -> Rewrite:
    """What takes documents through the last steps of the pipeline, by its own settings."""
    steps = [pipeline.get_component(name) for name in _STEPS]

    def rewrite(revisions: Sequence[Revision]) -> None:
        passed = list(revisions)
        for step in steps[:-1]:
            passed = step.run(revisions=passed)["revisions"]
        steps[-1].run(revisions=passed)

    return rewrite
