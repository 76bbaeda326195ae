"""Use cases of articles: inspect, preview, publish, withdraw."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from threading import Event, Lock
from time import monotonic
from typing import TypeVar

from components.ingest.inspection import InspectedChunk
from components.language.normalise import clean
from pipelines.ask.articles import closing
from pipelines.ask.articles import preview as previews
from pipelines.ask.articles.closing import Closing
from pipelines.ask.articles.preview import OnProgress, Preview, source_of
from pipelines.ask.runner import Runner
from pipelines.ask.usecase import Ask
from pipelines.fair_requests import give_up_turn
from pipelines.ingest.usecase import Ingest
from pipelines.pools import Pool
from settings import get_settings
from tenants.audit import store as audit
from tenants.core import context
from tenants.core.errors import Busy, Conflict, NotFound, trail
from tenants.desk import articles
from tenants.desk.articles import Article, Draft
from tenants.knowledge import gaps
from tenants.knowledge.gaps import Gap

log = logging.getLogger("opora.articles")
T = TypeVar("T")

_PREVIEWS = 32
"""Previews at once, one of a tenant. Their questions take turns with all others."""

_AT_ONCE, _TURNS, _OF_TENANT = 32, 4, 32
"""Requests that ask gaps again at once; those of one tenant; accepted requests of a tenant. Their threads only wait, as
their questions take turns with all others. Requests wait, because a client that is refused asks again."""

_PATIENCE_SECONDS = 30.0

_SAVE_SECONDS = 0.5


class Articles:
    """The articles of the tenant in context.

    :param ingest: takes them into the knowledge base.
    :param runner: answers the questions of previews and gaps, in its seats; when None, an `Ask` made for each of them
        does.
    """

    def __init__(self, ingest: Ingest, runner: Runner | None = None) -> None:
        self._ingest = ingest
        self._runner = runner
        self._ask = runner.ask if runner is not None else None
        self._worker = ThreadPoolExecutor(_PREVIEWS, "previews")
        self._asking = Pool("gaps", _AT_ONCE, turns=_TURNS, patience=_PATIENCE_SECONDS)
        self._asking_later = Pool("gaps-later", _TURNS, turns=1)
        self._later: set[asyncio.Task[None]] = set()
        self._stopping = Event()
        self._running: Counter[str] = Counter()
        self._lock = Lock()

    def warm_up(self) -> None:
        """Do nothing: the first preview warms up its components."""

    def close(self) -> None:
        """Leave off after the question in progress."""
        self._stopping.set()
        self._worker.shutdown(wait=True, cancel_futures=True)
        self._asking.close()
        self._asking_later.close()

    async def in_turn(self, work: Callable[[], T]) -> T:
        """Run what decides on gaps in a thread that no other request needs.

        :raises Busy: the tenant has too many of them at work, or other tenants have all threads. Nothing was changed.
        """
        give_up_turn()
        return await self._asking.run({context.current().tenant_id: _OF_TENANT}, work)

    def chunks(self, article: Article) -> tuple[InspectedChunk, ...]:
        return self._ingest.chunks(source_of(article))

    def preview(self, article_id: str, on_progress: OnProgress) -> Preview:
        """Ask what the article would change, here and now, and keep the result."""
        article = articles.get(article_id)
        preview = previews.run(article, self._ingest, self._ask, on_progress=on_progress)
        articles.put_preview(article_id, preview.model_dump(mode="json"))
        return preview

    def begin_preview(self, article_id: str) -> Article:
        """Begin a preview that goes on by itself; one of the tenant's at a time.

        :raises OporaError: `article_unknown`, `preview_busy`, or why the article would be refused.
        """
        article = articles.get(article_id)
        self.chunks(article)
        tenant_id = context.current().tenant_id
        with self._lock:
            if self._running[tenant_id] or self._running.total() >= _PREVIEWS:
                raise Busy("preview_busy")
            self._running[tenant_id] += 1
        try:
            articles.put_preview(article_id, previews.begun(article).model_dump(mode="json"))
            self._worker.submit(copy_context().run, self._run, article)
        except BaseException:
            self._leave(tenant_id)
            raise
        return articles.get(article_id)

    def publish(self, article_id: str, version: int) -> Article:
        """Put a version of the draft, which must be the newest, into the knowledge base.

        Its open gaps are closed if their questions are answered now.

        :raises OporaError: `article_unknown`, `article_changed`, `documents_busy`, or why it is refused.
        """
        return self._publish(article_id, version)[0]

    async def publish_in_turn(self, article_id: str, version: int) -> Article:
        """Publish in a thread that no other request needs, and ask the gaps that there was no time for later.

        :raises OporaError: as `publish` and `in_turn`.
        """
        published, left = await self.in_turn(partial(self._publish, article_id, version))
        if left:
            task = asyncio.get_running_loop().create_task(self._close_later(article_id, left))
            self._later.add(task)
            task.add_done_callback(self._later.discard)
        return published

    async def _close_later(self, article_id: str, left: Sequence[Gap]) -> None:
        """Ask the gaps of a published article, a turn at a time, until each was asked."""
        try:
            while left:
                left = await self._asking_later.run({}, partial(self._close_open, article_id, left))
        except BaseException as error:
            log.warning("%d gaps of article %s were not asked: %s", len(left), article_id, trail(error))
            if not isinstance(error, Exception):
                raise

    def _close_open(self, article_id: str, left: Sequence[Gap]) -> Sequence[Gap]:
        """Ask those of the gaps that are still open; return those that there was no time for."""
        opened = {gap.gap_id for gap in gaps.of_article(article_id) if gap.status == "open"}
        return self.close_gaps([gap.gap_id for gap in left if gap.gap_id in opened]).left

    def _publish(self, article_id: str, version: int) -> tuple[Article, Sequence[Gap]]:
        """Publish and close gaps. Return those that there was no time for, too."""
        article = articles.get(article_id)
        if article.version != version:
            raise Conflict("article_changed", version=article.version, by=article.updated_by)
        record = self._ingest.publish(source_of(article))
        published = articles.mark_published(article_id, version)
        audit.note_article(published.doc_id, "published", record.version, get_settings())
        opened = [gap.gap_id for gap in gaps.of_article(article_id) if gap.status == "open"]
        return published, self.close_gaps(opened).left

    def close_gaps(self, gap_ids: Sequence[str]) -> Closing:
        """Close those of the gaps whose questions are answered now.

        :raises NotFound: there is no such gap (`gap_unknown`).
        """
        if not gap_ids:
            return Closing((), ())
        ask = self._ask or Ask()
        try:
            return closing.close(gap_ids, ask, self._runner)
        finally:
            if ask is not self._ask:
                ask.engine.close()

    def withdraw(self, article_id: str) -> Article:
        """Take the article out of the knowledge base; the gaps that it had closed are open again."""
        article = articles.get(article_id)
        try:
            self._ingest.withdraw(article.doc_id)
        except NotFound:
            # The document has already been removed.
            log.info("article %s was published no more", article_id)
        withdrawn = articles.mark_withdrawn(article_id)
        audit.note_article(article.doc_id, "withdrawn", article.published_version or 0, get_settings())
        return withdrawn

    def close_gap(self, gap_id: str) -> Gap:
        """Close a gap. Raises `NotFound`, or `Conflict` (`gap_unanswered`) while one of its questions is unanswered."""
        closed = self.close_gaps([gap_id]).closed
        if not closed:
            raise Conflict("gap_unanswered")
        return closed[0]

    def _run(self, article: Article) -> None:
        tenant_id, saved = context.current().tenant_id, monotonic()
        latest = previews.begun(article)

        def keep(preview: Preview) -> None:
            nonlocal saved, latest
            latest = preview
            if monotonic() - saved >= _SAVE_SECONDS or not preview.asked:
                saved = monotonic()
                articles.put_preview(article.article_id, preview.model_dump(mode="json"))

        try:
            run = partial(previews.run, article, self._ingest, on_progress=keep, stopping=self._stopping.is_set)
            latest = run(self._runner.ask, seated=self._runner.in_background) if self._runner is not None else run()
        except Exception as error:
            log.error("a preview of %r failed: %s", tenant_id, trail(error))
            latest = previews.failed(latest)
        finally:
            self._leave(tenant_id)
        try:
            articles.put_preview(article.article_id, latest.model_dump(mode="json"))
        except Exception as error:
            log.error("a preview of %r is not kept: %s", tenant_id, trail(error))

    def _leave(self, tenant_id: str) -> None:
        with self._lock:
            self._running[tenant_id] -= 1


def drafted(title: str, text: str, questions: Sequence[str] = (), lang: str = "", trust: str = "auto") -> Draft:
    """Return a draft in its stored form: normalised line ends and spaces, no duplicate questions."""
    asked = (" ".join(clean(question).split()) for question in questions)
    return Draft(
        " ".join(clean(title).split()),
        text.replace("\r\n", "\n").strip(),
        tuple(dict.fromkeys(filter(None, asked))),
        lang,
        trust,
    )
