"""Article editor: draft, preview of answers, publishing. The forms work without JavaScript."""

from collections.abc import Sequence
from typing import Annotated, Literal, TypeAlias, get_args

from fastapi import Form, Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from components.ingest.inspection import InspectedChunk
from components.language.texts import LOCALES
from components.turn import Trust
from pipelines import problems
from pipelines.ask.articles import gap_meanings, preview
from pipelines.ask.articles.preview import KINDS, AskedQuestion
from pipelines.ask.articles.usecase import Articles, drafted
from pipelines.routes import OpenRouter, opens
from tenants.audit import search
from tenants.core.errors import Busy, Conflict, Invalid, OporaError
from tenants.desk import articles, operators
from tenants.desk.articles import Article, Draft
from tenants.knowledge import documents, gaps
from tenants.knowledge.gaps import Gap
from ui.desk import chat_view
from ui.desk.rendering import Desk, back_to, may, or_again

_ALL, _NEW, _ONE = "/desk/articles", "/desk/articles/new", "/desk/articles/{article_id}"
_FORM_BYTES = 600_000
"""Size of the longest text with every character escaped as six bytes."""
_PAGE = 50
_TRUSTS = get_args(Trust)

_Text: TypeAlias = Annotated[str, Field(max_length=200_000)]
_Ids: TypeAlias = Annotated[list[str], Field(max_length=gaps.MOST)]
_Version: TypeAlias = Annotated[int, Field(ge=0, le=2**31 - 1)]


class DraftForm(BaseModel):
    """Form of the editor.

    :param gap: the gaps that the article shall close, of those `offered`.
    :param keep: questions of gaps to add to the article's own.
    """

    title: _Text = ""
    text: _Text = ""
    questions: _Text = ""
    lang: Annotated[str, Field(max_length=8)] = ""
    trust: Annotated[str, Field(max_length=32)] = "auto"
    version: _Version = 0
    gap: _Ids = []
    offered: _Ids = []
    keep: Annotated[list[str], Field(max_length=100)] = []
    then: Literal["save", "preview"] = "save"

    def draft(self) -> Draft:
        """Return the draft; an unknown language or trust is replaced by the default."""
        lang, trust = self.lang if self.lang in LOCALES else "", self.trust if self.trust in _TRUSTS else "auto"
        return drafted(self.title, self.text, [*self.questions.splitlines(), *self.keep], lang, trust)


def router(desk: Desk, service: Articles) -> OpenRouter:
    endpoints = OpenRouter("operate", limit=_FORM_BYTES, page=True, include_in_schema=False)

    @endpoints.get(_ALL)
    def show_articles(page: Annotated[int, Query(ge=1, le=articles.MOST)] = 1) -> Response:
        listed = articles.page(limit=_PAGE + 1, offset=(page - 1) * _PAGE)
        return desk.page(
            "articles/list.html",
            section="gaps",
            tab="articles",
            articles=listed[:_PAGE],
            people=chat_view.names(operators.all()),
            number=page,
            following=page + 1 if len(listed) > _PAGE else None,
        )

    @endpoints.get(_NEW)
    def show_new(gap: Annotated[list[str] | None, Query(max_length=gaps.MOST)] = None) -> Response:
        chosen = [gaps.get(gap_id) for gap_id in gap or ()]
        return _edit(desk, None, gap_meanings.group_of(chosen[0]).gaps if len(chosen) == 1 else chosen)

    def refused_article(refused: OporaError, form: DraftForm) -> Response:
        return _edit(desk, None, [gaps.get(gap_id) for gap_id in form.offered], form=form, refused=refused)

    @endpoints.post(_NEW)
    @or_again(refused_article, Invalid)
    def add(form: Annotated[DraftForm, Form()]) -> Response:
        return go_on(articles.add(form.draft(), form.gap), form)

    @endpoints.get(_ONE)
    def show_article(article_id: str, done: Annotated[str, Query(max_length=20)] = "") -> Response:
        known = done if done in ("saved", "published", "withdrawn") else ""
        return _edit(desk, articles.get(article_id), done=known)

    @endpoints.post(_ONE)
    def save(article_id: str, form: Annotated[DraftForm, Form()]) -> Response:
        try:
            article = articles.put(article_id, form.draft(), form.version, form.gap)
        except (Conflict, Invalid) as refused:
            return _edit(desk, articles.get(article_id), form=form, refused=refused)
        return go_on(article, form)

    def go_on(article: Article, form: DraftForm) -> Response:
        if form.then == "save":
            return back_to(f"{_path(article)}?done=saved")
        return _begin_preview(desk, service, article.article_id)

    @endpoints.get(f"{_ONE}/preview")
    def show_preview(article_id: str) -> Response:
        return _preview(desk, service, articles.get(article_id))

    @endpoints.post(f"{_ONE}/preview")
    def begin(article_id: str) -> Response:
        return _begin_preview(desk, service, article_id)

    def refused_change(refused: OporaError, article_id: str, **_: object) -> Response:
        return _edit(desk, articles.get(article_id), refused=refused)

    @endpoints.post(f"{_ONE}/publish")
    @opens(scope="ingest")
    @or_again(refused_change, Conflict, Invalid, Busy)
    async def publish(article_id: str, version: Annotated[_Version, Form()] = 0) -> Response:
        await service.publish_in_turn(article_id, version)
        return back_to(f"/desk/articles/{article_id}?done=published")

    @endpoints.post(f"{_ONE}/withdraw")
    @opens(scope="ingest")
    @or_again(refused_change, Conflict, Invalid, Busy)
    def withdraw(article_id: str) -> Response:
        service.withdraw(article_id)
        return back_to(f"/desk/articles/{article_id}?done=withdrawn")

    @endpoints.post(f"{_ONE}/remove")
    @or_again(refused_change, Conflict)
    def remove(article_id: str) -> Response:
        articles.remove(article_id)
        return back_to(_ALL)

    return endpoints


def _edit(
    desk: Desk,
    article: Article | None,
    written_for: Sequence[Gap] | None = None,
    *,
    form: DraftForm | None = None,
    refused: OporaError | None = None,
    done: str = "",
) -> Response:
    """Return the editor's page.

    :param written_for: the gaps whose questions are shown next to the form; None: those of the article.
    :param form: the author's unsaved text and selected gaps.
    """
    if written_for is None:
        written_for = gaps.of_article(article.article_id) if article else ()
    return desk.page(
        "articles/edit.html",
        refused,
        section="gaps",
        tab="articles",
        article=article,
        draft=form.draft() if form else article.draft if article else Draft("", ""),
        written_for=written_for,
        linked=form.gap if form else {gap.gap_id for gap in written_for},
        trusts=_TRUSTS,
        locales=LOCALES,
        limits=articles,
        people=chat_view.names(operators.all()),
        fault=_words(refused) if refused else "",
        theirs=article if form and isinstance(refused, Conflict) else None,
        done=done,
        publishes=may("ingest"),
    )


def _begin_preview(desk: Desk, service: Articles, article_id: str) -> Response:
    article = articles.get(article_id)
    try:
        service.begin_preview(article_id)
    except Busy:
        now = preview.stored(article)
        if now is None or now.state != "running" or now.version != article.version:
            raise
    except Invalid as refused:
        return _edit(desk, article, refused=refused)
    return back_to(f"{_path(article)}/preview")


def _titles(article: Article, asked: Sequence[AskedQuestion]) -> dict[str, str]:
    """Return the titles of the documents that the answers cite, by id; the article may not be among them yet."""
    cited = {doc_id for one in asked for side in (one.before, one.after) for doc_id in side.cited}
    return {doc_id: one.title for doc_id, one in documents.find(sorted(cited)).items()} | {
        article.doc_id: article.draft.title
    }


def _preview(desk: Desk, service: Articles, article: Article) -> Response:
    shown = preview.stored(article)
    asked = shown.questions if shown else ()
    fault = ""
    chunks: tuple[InspectedChunk, ...] = ()
    try:
        chunks = service.chunks(article)
    except Invalid as refused:
        fault = _words(refused)
    records = search.of([one.turn_id for one in asked if one.turn_id])
    effects = [one.effect(article.doc_id) for one in asked]
    return desk.page(
        "articles/preview.html",
        section="gaps",
        tab="articles",
        article=article,
        preview=shown,
        running=shown is not None and preview.is_running(shown),
        kinds=KINDS,
        # Questions whose turns were erased have no text left to show.
        asked={
            kind: [
                (one, effect, one.question or records[one.turn_id].question)
                for one, effect in zip(asked, effects, strict=True)
                if one.kind == kind and (one.question or one.turn_id in records)
            ]
            for kind in KINDS
        },
        titles=_titles(article, asked),
        effects={effect: effects.count(effect) for effect in dict.fromkeys(effects)},
        chunks=chunks,
        fault=fault,
        publishes=may("ingest"),
    )


def _words(refused: OporaError) -> str:
    by = refused.params.get("by")
    if isinstance(by, str):
        name = chat_view.names(operators.all()).get(by, by)
        refused = type(refused)(refused.code, **{**refused.params, "by": name})
    return problems.detail(refused)


def _path(article: Article) -> str:
    return f"/desk/articles/{article.article_id}"
