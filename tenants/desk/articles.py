"""Articles written at the desk: the draft, its last author, and the version that customers see.

Every author may edit a draft: saving names the version that was read, and is refused if another one was saved since.
Publishing makes a document of the knowledge base, which customers see; the record here holds the published version.
"""

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime
from secrets import token_hex
from typing import Literal, TypeAlias

from pydantic import BaseModel
from sqlalchemy import ScalarSelect, select, update

from tenants.core import context
from tenants.core.errors import Conflict, Invalid
from tenants.core.json import Json
from tenants.desk.tables import ArticleRow
from tenants.knowledge import gaps
from tenants.storage import database
from tenants.storage.mapping import columns_of, record_of
from tenants.storage.tenant_session import TenantSession

ORIGIN = "desk"
"""The source of a document that was written here."""

MOST = 2_000
MAX_TITLE_LENGTH, MAX_TEXT_LENGTH = 300, 100_000
MAX_QUESTIONS, MAX_QUESTION_LENGTH = 20, 500
State: TypeAlias = Literal["draft", "published", "changed"]
"""`changed`: customers see another version than the newest."""


@dataclass(frozen=True, slots=True)
class Draft:
    """Text of an article.

    :param questions: questions that the article should answer, in the author's words.
    :param lang: detected from the letters if empty.
    """

    title: str
    text: str
    questions: tuple[str, ...] = ()
    lang: str = ""
    trust: str = "auto"


@dataclass(frozen=True, slots=True)
class Article:
    """A draft with its history.

    :param version: counts its changes; `published_version` is the one in the knowledge base, None if unpublished.
    :param created_by: a login, like `updated_by` and `published_by`.
    :param preview: the last preview of its effect; for the contents see `pipelines.ask.articles.preview`.
    :param chat_id: the chat that it was written from; None without one, or after the chat was deleted.
    """

    article_id: str
    draft: Draft
    version: int
    created_at: datetime
    created_by: str
    updated_at: datetime
    updated_by: str
    published_version: int | None
    published_at: datetime | None
    published_by: str | None
    preview: Mapping[str, Json] | None
    chat_id: str | None

    @property
    def doc_id(self) -> str:
        """Return the id of the document that it is published as."""
        return doc_id_of(self.article_id)

    @property
    def is_current(self) -> bool:
        """Whether customers see the newest version."""
        return self.published_version == self.version

    @property
    def state(self) -> State:
        """Return the publication state."""
        return _state(self.version, self.published_version)


class ListedArticle(BaseModel, from_attributes=True, frozen=True):
    """An article without its texts."""

    article_id: str
    title: str
    version: int
    updated_at: datetime
    updated_by: str
    published_version: int | None
    published_at: datetime | None

    @property
    def state(self) -> State:
        """Return the publication state."""
        return _state(self.version, self.published_version)


_LISTED = tuple(ListedArticle.model_fields)


def _state(version: int, published: int | None) -> State:
    return "draft" if not published else "published" if published == version else "changed"


def doc_id_of(article_id: str) -> str:
    """Return the id of the document that the article is published as."""
    return f"article-{article_id}"


def page(*, limit: int = 50, offset: int = 0) -> tuple[ListedArticle, ...]:
    """Return a page of the tenant's articles, last changed first."""
    columns = (getattr(ArticleRow, name) for name in _LISTED)
    query = select(*columns)
    order = ArticleRow.updated_at.desc(), ArticleRow.article_id
    with database.reading() as session:
        rows = session.execute(query.order_by(*order).limit(limit).offset(offset)).all()
    return tuple(map(ListedArticle.model_validate, rows))


def find(article_ids: Iterable[str]) -> Mapping[str, Article]:
    """Return the tenant's articles among these ids, by id."""
    own = ArticleRow.article_id.in_(set(article_ids))
    with database.reading() as session:
        return {row.article_id: _article(row) for row in session.scalars(select(ArticleRow).where(own))}


def get(article_id: str) -> Article:
    """Return one article. Raises `NotFound` with the code `article_unknown`."""
    with database.reading() as session:
        return _article(session.existing(ArticleRow, article_id))


def of_chat(chat_id: str) -> Article | None:
    """Return the article written from a chat; the newest of several."""
    own = ArticleRow.chat_id == chat_id
    newest = select(ArticleRow).where(own).order_by(ArticleRow.created_at.desc()).limit(1)
    with database.reading() as session:
        row = session.scalar(newest)
        return _article(row) if row is not None else None


def add(draft: Draft, gap_ids: Sequence[str] = (), chat_id: str | None = None) -> Article:
    """Create a draft.

    :param gap_ids: the gaps that it covers.
    :param chat_id: the chat that it is written from.
    :raises OporaError: `gap_unknown`, `article_invalid`, `articles_too_many`.
    """
    _check(draft)
    caller, now = context.current(), datetime.now(UTC)
    row = ArticleRow(
        article_id=token_hex(8),
        version=1,
        created_at=now,
        created_by=caller.subject,
        updated_at=now,
        updated_by=caller.subject,
        chat_id=chat_id,
        **columns_of(draft),
    )
    with database.writing() as session:
        session.check_room(ArticleRow, MOST, "articles_too_many")
        session.add(row)
        gaps.link(session, gap_ids, row.article_id)
    return _article(row)


def put(article_id: str, draft: Draft, version: int, gap_ids: Sequence[str] | None = None) -> Article:
    """Save a draft. An unchanged draft makes no new version.

    :param version: the version that the author has read.
    :param gap_ids: the gaps that the article covers from now on; None keeps them.
    :raises OporaError: `article_unknown`, `gap_unknown`, `article_invalid`, and `article_changed` if another version
        was saved meanwhile.
    """
    _check(draft)
    with database.writing() as session:
        row = session.existing(ArticleRow, article_id, lock=True)
        if row.version != version:
            raise Conflict("article_changed", version=row.version, by=row.updated_by)
        if _article(row).draft != draft:
            for name, value in columns_of(draft).items():
                setattr(row, name, value)
            row.version += 1
            row.updated_at, row.updated_by = datetime.now(UTC), context.current().subject
        if gap_ids is not None:
            gaps.link(session, gap_ids, article_id)
        return _article(row)


def assign(article_id: str, gap_ids: Sequence[str]) -> Article:
    """Add gaps to those that an article is written for. Raises `NotFound` (`article_unknown`, `gap_unknown`)."""
    with database.writing() as session:
        row = session.existing(ArticleRow, article_id, lock=True)
        gaps.assign(session, gap_ids, article_id)
        return _article(row)


def mark_published(article_id: str, version: int) -> Article:
    """Note which version is in the knowledge base now."""
    with database.writing() as session:
        row = session.existing(ArticleRow, article_id, lock=True)
        row.published_version, row.published_at = version, datetime.now(UTC)
        row.published_by = context.current().subject
        return _article(row)


def mark_withdrawn(article_id: str) -> Article:
    """Record that the article was withdrawn; the gaps that it had closed are open again."""
    with database.writing() as session:
        row = session.existing(ArticleRow, article_id, lock=True)
        row.published_version = row.published_at = row.published_by = None
        gaps.reopen_for(session, article_id)
        return _article(row)


def remove(article_id: str) -> None:
    """Delete a draft. Raises `NotFound` (`article_unknown`), `Conflict` (`article_published`)."""
    with database.writing() as session:
        row = session.existing(ArticleRow, article_id, lock=True)
        if row.published_version is not None:
            raise Conflict("article_published")
        gaps.link(session, (), article_id)
        session.delete(row)


def put_preview(article_id: str, preview: Mapping[str, Json]) -> None:
    """Store the current state of a preview; ignore a deleted article."""
    own = ArticleRow.article_id == article_id
    with database.writing() as session:
        session.execute(update(ArticleRow).where(own).values(preview=dict(preview)))


def unlink_chats(session: TenantSession, chat_ids: ScalarSelect[str] | Sequence[str]) -> None:
    """Delete the links from articles to chats that are being deleted."""
    written = ArticleRow.chat_id.in_(chat_ids)
    session.execute(update(ArticleRow).where(written).values(chat_id=None))


def remove_drafts(session: TenantSession, chat_ids: ScalarSelect[str]) -> None:
    """Delete drafts that were written from chats and never published: they quote the customer."""
    unpublished = ArticleRow.chat_id.in_(chat_ids), ArticleRow.published_version.is_(None)
    for article_id in session.scalars(select(ArticleRow.article_id).where(*unpublished)).all():
        gaps.link(session, (), article_id)
        session.remove(ArticleRow, ArticleRow.article_id == article_id)


def forget_questions(session: TenantSession, erased: Set[str]) -> None:
    """Remove questions that are being erased from drafts that were never published."""
    drafts = select(ArticleRow.article_id, ArticleRow.questions).where(ArticleRow.published_version.is_(None))
    for article_id, questions in session.execute(drafts).all() if erased else ():
        if not erased.isdisjoint(questions):
            # A new version: a form that is open with the question cannot store it again.
            changed = {"questions": [one for one in questions if one not in erased], "version": ArticleRow.version + 1}
            session.execute(update(ArticleRow).where(ArticleRow.article_id == article_id).values(**changed))


def forget_previews(session: TenantSession) -> None:
    """Delete all previews: they hold answers to recorded questions, some of which are being erased."""
    stored = ArticleRow.preview.is_not(None)
    session.execute(update(ArticleRow).where(stored).values(preview=None))


def _check(draft: Draft) -> None:
    """Check a draft. It may have no text yet: publishing refuses that."""
    lengths = [len(question) for question in draft.questions]
    fits = (
        1 <= len(draft.title) <= MAX_TITLE_LENGTH
        and len(draft.text) <= MAX_TEXT_LENGTH
        and len(lengths) <= MAX_QUESTIONS
        and max(lengths, default=0) <= MAX_QUESTION_LENGTH
        # Databases cannot store NUL or half a surrogate pair, which JSON can encode.
        and not re.search("[\0\ud800-\udfff]", "\n".join((draft.title, draft.text, *draft.questions)))
    )
    if not fits:
        raise Invalid("article_invalid", title=MAX_TITLE_LENGTH, text=MAX_TEXT_LENGTH, questions=MAX_QUESTIONS)


def _article(row: ArticleRow) -> Article:
    return record_of(Article, row, draft=record_of(Draft, row))
