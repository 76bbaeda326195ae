"""Single documents taken through the steps of the ingest pipeline: written anew from their kept texts, or only read."""

from collections.abc import Callable, Sequence

from haystack import Pipeline

from components.ingest.document import Refusal, Revision, SourceDocument
from components.ingest.parse import ArticleParser
from components.ingest.reconcile import Rewrite

_STEPS = ("splitter", "enricher", "writer")
"""Steps of the ingest pipeline after parsing."""


def rewriter(pipeline: Pipeline) -> Rewrite:
    """Return a function that takes documents through the last steps of the pipeline, with its settings."""
    steps = [pipeline.get_component(name) for name in _STEPS]

    def rewrite(revisions: Sequence[Revision]) -> None:
        passed = list(revisions)
        for step in steps[:-1]:
            passed = step.run(revisions=passed)["revisions"]
        steps[-1].run(revisions=passed)

    return rewrite


def reader(pipeline: Pipeline) -> Callable[[SourceDocument], Revision]:
    """Return a function that takes a document through all steps before the writer and raises the error of a refusal."""
    parser = pipeline.get_component("parser")
    if not isinstance(parser, ArticleParser):
        raise TypeError("the ingest pipeline's parser says which documents are refused")
    splitter, enricher = (pipeline.get_component(name) for name in _STEPS[:2])

    def read(document: SourceDocument) -> Revision:
        checked = parser.parse(document)
        if isinstance(checked, Refusal):
            raise checked.error
        split = splitter.run(revisions=[Revision(checked, "")])
        for refusal in split["refusals"]:
            raise refusal.error
        enriched: list[Revision] = enricher.run(revisions=split["revisions"])["revisions"]
        return enriched[0]

    return read
