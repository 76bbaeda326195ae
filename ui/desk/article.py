"""Article editor: draft, preview of answers, publishing. The forms work without JavaScript."""

from collections.abc import Sequence
from typing import Annotated, Literal, TypeAlias, get_args

from fastapi import Form, Query
from starlette.responses import Response

from components.ingest.inspection import InspectedChunk
from components.language.texts import LOCALES
from components.turn import Trust
from pipelines import problems
from pipelines.ask.articles import gap_meanings, preview
from pipelines.ask.articles.preview import KINDS
from pipelines.ask.articles.usecase import Articles, drafted
from pipelines.routes import OpenRouter, opens
from tenants.audit import search
from tenants.core.errors import Busy, Conflict, Invalid, OporaError
from tenants.desk import articles, operators
from tenants.desk.articles import Article, Draft
from tenants.knowledge import gaps
from tenants.knowledge.gaps import Gap
from ui.desk import conversation, knowledge
from ui.desk.view import Desk, back_to, or_again

SCOPE = "operate"
_ALL, _NEW, _ONE = "/desk/articles", "/desk/articles/new", "/desk/articles/{article_id}"
_PREVIEW, _PUBLISH, _WITHDRAW, _REMOVE = (f"{_ONE}/{act}" for act in ("preview", "publish", "withdraw", "remove"))
_FORM_BYTES = 600_000
"""Size of the longest text with every character escaped as six bytes."""
_PAGE = 50
_TRUSTS = get_args(Trust)
_EMPTY = Draft("", "")

_Text: TypeAlias = Annotated[str, Form(max_length=200_000)]
_Ids: TypeAlias = Annotated[list[str] | None, Form(max_length=gaps.MOST)]
_Words: TypeAlias = Annotated[list[str] | None, Form(max_length=100)]
_Version: TypeAlias = Annotated[int, Form(ge=0, le=2**31 - 1)]
_Next: TypeAlias = Annotated[Literal["save", "preview"], Form()]


def router(desk: Desk, service: Articles) -> OpenRouter:
    """Return the pages."""
    endpoints = OpenRouter(SCOPE, limit=_FORM_BYTES, page=True, include_in_schema=False)
    editor = _Editor(desk)
    _add_writing(endpoints, desk, service, editor)
    _add_deciding(endpoints, desk, service, editor)
    return endpoints


class _Editor:
    """Editor page of a draft."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def show(
        self,
        article: Article | None,
        written_for: Sequence[Gap],
        *,
        draft: Draft | None = None,
        linked: Sequence[str] | None = None,
        status: int = 200,
        fault: str = "",
        theirs: Article | None = None,
        done: str = "",
    ) -> Response:
        """Return the form.

        :param written_for: the gaps whose questions are shown next to the form.
        :param draft: the author's unsaved text.
        :param linked: the selected gaps; None selects all.
        :param theirs: the version that another author has saved in the meantime.
        """
        return self._desk.page(
            "articles/edit.html",
            status,
            section="gaps",
            tabs=knowledge.tabs("articles"),
            article=article,
            draft=draft or (article.draft if article else _EMPTY),
            written_for=written_for,
            linked={gap.gap_id for gap in written_for} if linked is None else set(linked),
            trusts=_TRUSTS,
            locales=LOCALES,
            limits=articles,
            people=conversation.names(operators.all()),
            fault=fault,
            theirs=theirs,
            done=done,
            publishes=knowledge.may_publish(),
        )

    def of(self, article_id: str, *, done: str = "") -> Response:
        """Return the form of a stored draft."""
        return self.show(articles.get(article_id), gaps.of_article(article_id), done=done)


def _add_writing(endpoints: OpenRouter, desk: Desk, service: Articles, editor: _Editor) -> None:
    @endpoints.get(_ALL)
    def show_articles(page: Annotated[int, Query(ge=1, le=articles.MOST)] = 1) -> Response:
        listed = articles.page(limit=_PAGE + 1, offset=(page - 1) * _PAGE)
        return desk.page(
            "articles/list.html",
            section="gaps",
            tabs=knowledge.tabs("articles"),
            articles=listed[:_PAGE],
            people=conversation.names(operators.all()),
            number=page,
            following=page + 1 if len(listed) > _PAGE else None,
        )

    @endpoints.get(_NEW)
    def show_new(gap: Annotated[list[str] | None, Query(max_length=gaps.MOST)] = None) -> Response:
        chosen = [gaps.get(gap_id) for gap_id in gap or ()]
        return editor.show(None, gap_meanings.group_of(chosen[0]).gaps if len(chosen) == 1 else chosen)

    @endpoints.post(_NEW)
    def add(
        title: _Text = "",
        text: _Text = "",
        questions: _Text = "",
        lang: Annotated[str, Form(max_length=8)] = "",
        trust: Annotated[str, Form(max_length=32)] = "auto",
        gap: _Ids = None,
        offered: _Ids = None,
        keep: _Words = None,
        then: _Next = "save",
    ) -> Response:
        draft = _drafted(title, text, questions, keep, lang, trust)
        try:
            article = articles.add(draft, gap or ())
        except Invalid as refused:
            shown = [gaps.get(gap_id) for gap_id in offered or ()]
            return editor.show(None, shown, draft=draft, linked=gap or (), status=422, fault=_words(refused))
        return _go_on(service, article, then)

    @endpoints.get(_ONE)
    def show_article(article_id: str, done: Annotated[str, Query(max_length=20)] = "") -> Response:
        return editor.of(article_id, done=done if done in ("saved", "published", "withdrawn") else "")

    @endpoints.post(_ONE)
    def save(
        article_id: str,
        title: _Text = "",
        text: _Text = "",
        questions: _Text = "",
        lang: Annotated[str, Form(max_length=8)] = "",
        trust: Annotated[str, Form(max_length=32)] = "auto",
        version: _Version = 0,
        gap: _Ids = None,
        keep: _Words = None,
        then: _Next = "save",
    ) -> Response:
        draft = _drafted(title, text, questions, keep, lang, trust)
        written_for = gaps.of_article(article_id)
        try:
            article = articles.put(article_id, draft, version, gap or ())
        except (Conflict, Invalid) as refused:
            now = articles.get(article_id)
            return editor.show(
                now,
                written_for,
                draft=draft,
                linked=gap or (),
                status=refused.status,
                fault=_words(refused),
                theirs=now if isinstance(refused, Conflict) else None,
            )
        return _go_on(service, article, then)

    def _go_on(service: Articles, article: Article, then: str) -> Response:
        if then == "save":
            return back_to(f"{_path(article)}?done=saved")
        return _begin(editor, service, article.article_id)


def _add_deciding(endpoints: OpenRouter, desk: Desk, service: Articles, editor: _Editor) -> None:
    @endpoints.get(_PREVIEW)
    def show_preview(article_id: str) -> Response:
        return _preview(desk, service, articles.get(article_id))

    @endpoints.post(_PREVIEW)
    def begin(article_id: str) -> Response:
        return _begin(editor, service, article_id)

    def refused_change(refused: OporaError, article_id: str, **_: object) -> Response:
        article = articles.get(article_id)
        return editor.show(article, gaps.of_article(article_id), status=refused.status, fault=_words(refused))

    @endpoints.post(_PUBLISH)
    @opens(scope="ingest")
    @or_again(refused_change, Conflict, Invalid, Busy)
    def publish(article_id: str, version: _Version = 0) -> Response:
        service.publish(article_id, version)
        return back_to(f"/desk/articles/{article_id}?done=published")

    @endpoints.post(_WITHDRAW)
    @opens(scope="ingest")
    @or_again(refused_change, Conflict, Invalid, Busy)
    def withdraw(article_id: str) -> Response:
        service.withdraw(article_id)
        return back_to(f"/desk/articles/{article_id}?done=withdrawn")

    @endpoints.post(_REMOVE)
    @or_again(refused_change, Conflict)
    def remove(article_id: str) -> Response:
        articles.remove(article_id)
        return back_to(_ALL)


def _begin(editor: _Editor, service: Articles, article_id: str) -> Response:
    """Start a preview and show it; a running one continues."""
    article = articles.get(article_id)
    try:
        service.begin_preview(article_id)
    except Busy:
        now = preview.stored(article)
        if now is None or now.state != "running" or now.version != article.version:
            raise
    except Invalid as refused:
        fault = _words(refused)
        return editor.show(article, gaps.of_article(article_id), status=refused.status, fault=fault)
    return back_to(f"{_path(article)}/preview")


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
        tabs=knowledge.tabs("articles"),
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
        effects={effect: effects.count(effect) for effect in dict.fromkeys(effects)},
        chunks=chunks,
        fault=fault,
        publishes=knowledge.may_publish(),
    )


def _drafted(title: str, text: str, questions: str, keep: Sequence[str] | None, lang: str, trust: str) -> Draft:
    chosen_lang, chosen_trust = lang if lang in LOCALES else "", trust if trust in _TRUSTS else "auto"
    return drafted(title, text, [*questions.splitlines(), *(keep or ())], chosen_lang, chosen_trust)


def _words(refused: OporaError) -> str:
    """Return why a request was rejected, with people shown by name."""
    by = refused.params.get("by")
    if isinstance(by, str):
        name = conversation.names(operators.all()).get(by, by)
        refused = type(refused)(refused.code, **{**refused.params, "by": name})
    return problems.detail(refused)


def _path(article: Article) -> str:
    return f"/desk/articles/{article.article_id}"
