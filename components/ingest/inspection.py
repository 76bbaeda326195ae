"""The stored form of a document, chunk by chunk, for inspection by a person."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from components.ingest.encode import meta_of, terms_of
from components.ingest.tokens import count_tokens
from components.turn import Frozen
from tenants.core import fairness
from tenants.core.json import Json
from tenants.core.points import Hit

_MAX_TERMS = 20


@dataclass(frozen=True, slots=True)
class Term(Frozen):
    """A word stem that a chunk is found by, and how many chunks of the knowledge base hold it."""

    stem: str
    chunks: int


@dataclass(frozen=True, slots=True)
class InspectedChunk(Frozen):
    """A chunk, as shown to operators.

    :param heading: the path of headings below the title.
    :param page: where it begins in a document that has pages.
    :param sentences: (start, end) character offsets into `text`.
    :param overlap: how many characters at the beginning repeat the end of the chunk before.
    :param terms: its search terms, the most distinctive first.
    """

    chunk_id: str
    index: int
    heading: str
    page: int | None
    text: str
    tokens: int
    sentences: tuple[tuple[int, int], ...]
    overlap: int
    flags: tuple[str, ...]
    terms: tuple[Term, ...]


def inspect(hits: Iterable[Hit], stems: Mapping[str, int]) -> Iterator[InspectedChunk]:
    """Yield the chunks of one document.

    :param hits: stored chunks in reading order.
    :param stems: how many chunks of the knowledge base hold each stem.
    """
    previous: Hit | None = None
    for hit in hits:
        fairness.yield_to_questions()
        meta = meta_of(hit.payload)
        text = str(hit.payload["content"])
        page = meta.get("page")
        rarest = sorted(terms_of(hit.payload).stems, key=lambda stem: (stems.get(stem, 1), stem))
        yield InspectedChunk(
            chunk_id=hit.id,
            index=int(str(meta["chunk_index"])),
            heading=str(meta["heading"]),
            page=page if isinstance(page, int) else None,
            text=text,
            tokens=count_tokens(text),
            sentences=_spans(meta["sentences"]),
            overlap=_overlap(previous, hit) if previous is not None else 0,
            flags=_words(meta.get("flags")),
            terms=tuple(Term(stem, stems.get(stem, 1)) for stem in rarest[:_MAX_TERMS]),
        )
        previous = hit


def _overlap(previous: Hit, hit: Hit) -> int:
    """Return the end of the longest run of sentences that both end the chunk before and begin this one."""
    if meta_of(previous.payload)["heading"] != meta_of(hit.payload)["heading"]:
        return 0
    earlier, text = str(previous.payload["content"]), str(hit.payload["content"])
    ends = [end for _, end in _spans(meta_of(hit.payload)["sentences"])]
    last = [earlier[start:end] for start, end in _spans(meta_of(previous.payload)["sentences"])]
    first = [text[start:end] for start, end in _spans(meta_of(hit.payload)["sentences"])]
    for length in range(min(len(last), len(first)), 0, -1):
        if last[-length:] == first[:length]:
            return ends[length - 1]
    return 0


def _spans(value: Json) -> tuple[tuple[int, int], ...]:
    pairs = value if isinstance(value, list | tuple) else ()
    return tuple((int(pair[0]), int(pair[1])) for pair in pairs if isinstance(pair, list | tuple))


def _words(value: Json) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list | tuple) else ()
