"""The help centre of a site: the tenant's published documents as visitors list, search, read and rate them."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from components.decide.articles import article as offered
from components.judge.relevance import judge
from components.judge.terms import read_query
from components.passages import to_passage
from components.retrieve.retriever import TenantRetriever, haystack_filters
from components.turn import Article, Filters, Passage, Turn
from pipelines.ask.help_links import article_key
from pipelines.ask.outlines import AnchoredSection, anchor, sections_of
from tenants.accounts import registry
from tenants.core import fairness
from tenants.core.errors import NotFound
from tenants.knowledge import published, votes
from tenants.knowledge.documents import DocumentRecord
from tenants.knowledge.published import Listed
from tenants.storage.cache import TenantCache

FOUND = 10

_NEAR = 0.015
"""Least probability of a result that shares no word with the query. In the demo shop, made-up words reach 0.013, and
"loan" finds the instalment plan with 0.016.
"""


@dataclass(frozen=True, slots=True)
class Group:
    """The articles of one tag or folder; `name` is empty for those that have neither."""

    name: str
    articles: tuple[Listed, ...]


@dataclass(frozen=True, slots=True)
class HelpArticle:
    record: DocumentRecord
    sections: tuple[AnchoredSection, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """A section that a search found, and its sentence nearest to the query."""

    doc_id: str
    title: str
    heading: str
    anchor: str
    snippet: str


@dataclass(frozen=True, slots=True)
class _Shelf:
    """All articles: in groups, and their ids by their keys in paths."""

    groups: tuple[Group, ...]
    doc_ids: Mapping[str, str]


_SHELVED = 100_000
"""Articles in memory, of all tenants together."""


class HelpCentre:
    """Lists, searches, shows and rates the documents of the tenant in context.

    Threat: the help centre needs no token. So all pages share the list of its articles until a document changes.
    """

    def __init__(self) -> None:
        self._retriever = TenantRetriever()
        self._shelves: TenantCache[_Shelf] = TenantCache("", _SHELVED, lambda shelf: 1 + len(shelf.doc_ids))

    def groups(self) -> tuple[Group, ...]:
        """Group all articles by their first tag, else by their folder; sort by name, articles without either last."""
        return self._shelf().groups

    def article(self, key: str) -> HelpArticle:
        """Return the article with this key of a path. Raises `NotFound` with the code `document_unknown`."""
        record = self._record_of(key)
        return HelpArticle(record, sections_of(record))

    def search(self, words: str) -> tuple[Found, ...]:
        """Find articles, each by its best section, best first."""
        filters = haystack_filters(Filters(statuses=("active",)))
        documents = self._retriever.run(query=words, filters=filters)["documents"]
        query, turn = read_query(words), Turn(turn_id="", question=words)
        passages = [passage for passage in map(to_passage, documents) if passage.status == published.STATUS]
        best: dict[str, Passage] = {}
        for passage, score in zip(passages, judge(query, passages), strict=True):
            if score.evidence["cover"] or score.probability >= _NEAR:
                best.setdefault(passage.doc_id, passage)
        return tuple(_found(offered(passage, query, turn, passage.score)) for passage in list(best.values())[:FOUND])

    def vote(self, key: str, *, helpful: bool) -> None:
        record = self._record_of(key)
        votes.add(record.doc_id, record.version, helpful=helpful)

    def _record_of(self, key: str) -> DocumentRecord:
        record = published.get(self._shelf().doc_ids.get(key, "") if key.startswith("~") else key)
        if record is None:
            raise NotFound("document_unknown")
        return record

    def _shelf(self) -> _Shelf:
        tenant = registry.current()
        return self._shelves.get(tenant.key, lambda _: _loaded(), (tenant.document_changes, tenant.relations))


def _found(article: Article) -> Found:
    passage = article.passage
    return Found(passage.doc_id, passage.title, passage.heading, anchor(passage.heading), article.snippet)


def _loaded() -> _Shelf:
    grouped: defaultdict[str, list[Listed]] = defaultdict(list)
    doc_ids: dict[str, str] = {}
    for document in published.list_documents():
        fairness.yield_to_questions()
        grouped[_group_of(document)].append(document)
        doc_ids[article_key(document.doc_id)] = document.doc_id
    names = sorted(grouped, key=lambda name: (not name, name.casefold()))
    return _Shelf(tuple(Group(name, tuple(sorted(grouped[name], key=_by_title))) for name in names), doc_ids)


def _group_of(document: Listed) -> str:
    if document.tags:
        return document.tags[0]
    folder, _, _ = document.source.rpartition("/")
    return "" if "://" in document.source else folder.rpartition("/")[2]


def _by_title(document: Listed) -> tuple[str, str]:
    return document.title.casefold(), document.doc_id
