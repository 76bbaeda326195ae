"""Documents cut into chunks."""

from dataclasses import replace
from typing import TypedDict

from haystack import component

from components.ingest.document import Refusal, Revision
from components.ingest.pack import Sizes
from components.ingest.text_processes import TEXT_PROCESSES
from tenants.core.errors import CallerError, InternalFault

VERSION = "10"
"""Increase it whenever the same text is split or cleaned differently, so that stored documents are split again."""


class Split(TypedDict):
    """The documents that were cut, and the reasons why others were not."""

    revisions: list[Revision]
    refusals: list[Refusal]


@component
class DocumentSplitter:
    """Split documents into chunks at headings, then paragraphs, then sentences.

    A chunk belongs to one heading path, which is stored separately from its text. Lists with their introduction,
    tables, code and code entries ("E20 — …") stay whole up to `max_tokens`; a longer table is cut between rows with its
    header repeated.

    :param min_tokens: a chunk is closed at the first end of a paragraph from here on.
    :param max_tokens: maximum number of tokens of a chunk, overlap included.
    :param overlap_tokens: number of tokens that the next chunk of the same section repeats, in whole sentences.
    :param fragment_tokens: smaller chunks are merged with a neighbour, except under the heading of a code.
    """

    def __init__(
        self, min_tokens: int = 200, max_tokens: int = 500, overlap_tokens: int = 50, fragment_tokens: int = 50
    ) -> None:
        if not 0 <= 2 * overlap_tokens <= min_tokens <= max_tokens or max_tokens < 100 or fragment_tokens < 0:
            raise InternalFault("splitter_sizes_invalid", min_tokens=min_tokens, max_tokens=max_tokens)
        if fragment_tokens > max_tokens // 4:
            raise InternalFault("splitter_sizes_invalid", fragment_tokens=fragment_tokens, max_tokens=max_tokens)
        self.min_tokens = min_tokens
        self.max_tokens = max_tokens
        self.overlap_tokens = overlap_tokens
        self.fragment_tokens = fragment_tokens
        self._sizes = Sizes(min_tokens, max_tokens, overlap_tokens, fragment_tokens)

    @component.output_types(revisions=list[Revision], refusals=list[Refusal])
    def run(self, revisions: list[Revision]) -> Split:
        """Fill in each revision's title and chunks, the chunks' ids and sentences included.

        A document whose text takes too long is refused: `file_too_slow`.
        """
        split: list[Revision] = []
        refusals: list[Refusal] = []
        results = TEXT_PROCESSES.cut([revision.document for revision in revisions], self._sizes)
        for revision, result in zip(revisions, results, strict=True):
            if isinstance(result, CallerError):
                document = revision.document
                refusals.append(Refusal(result, document.source, document.line, document.doc_id))
            else:
                split.append(replace(revision, title=result.title, chunks=result.chunks))
        return Split(revisions=split, refusals=refusals)
