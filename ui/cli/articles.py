"""`opora article`: articles written to close knowledge gaps."""

from contextlib import closing
from operator import itemgetter
from pathlib import Path
from typing import Annotated

import typer

from components.language.texts import terminal_locale, text
from pipelines.ask.articles import from_chat
from pipelines.ask.articles.preview import Preview
from pipelines.ask.articles.usecase import Articles, drafted
from pipelines.ingest.usecase import Ingest
from tenants.audit import search
from tenants.core.errors import Invalid
from tenants.desk import articles
from tenants.desk.articles import Article, ListedArticle, doc_id_of
from tenants.knowledge import gaps
from ui.api.articles import article_part
from ui.cli.terminal import CommandGroup, print_json, print_table, progress_bar, texts

group = CommandGroup("articles")
message = group.message
_records = texts("records")

ArticleId = Annotated[str, typer.Argument(help=message("help.article_id"))]
Title = Annotated[str, typer.Option("--title", help=message("help.title"))]
File = Annotated[Path, typer.Argument(help=message("help.file"), exists=True, dir_okay=False)]
Questions = Annotated[list[str] | None, typer.Option("--question", help=message("help.question"))]
Gaps = Annotated[list[str] | None, typer.Option("--gap", help=message("help.gap"))]


def _print_articles(listed: tuple[ListedArticle, ...]) -> None:
    headers = (_records(f"column.{name}") for name in ("article_id", "title", "version", "published", "at"))
    rows = (
        (one.article_id, one.title, one.version, one.published_version, f"{one.updated_at:%F %T}") for one in listed
    )
    print_table(headers, rows)


def _print_saved(saved: Article) -> None:
    typer.echo(message("saved", article_id=saved.article_id, version=saved.version))


@group.tenant_command("list", show=_print_articles)
def article_list() -> tuple[ListedArticle, ...]:
    return articles.page(limit=articles.MOST)


@group.tenant_command("show")
def article_show(article_id: ArticleId) -> None:
    print_json(article_part(articles.get(article_id)))


@group.tenant_command("write")
def article_write(
    file: File,
    title: Title,
    questions: Questions = None,
    gap: Gaps = None,
    article_id: Annotated[str | None, typer.Option("--article", help=message("help.rewrite"))] = None,
) -> None:
    with Invalid("article_unreadable", path=str(file)).instead_of(UnicodeDecodeError):
        body = file.read_text(encoding="utf-8")
    if article_id is None:
        saved = articles.add(drafted(title, body, questions or ()), gap or ())
    else:
        now = articles.get(article_id)
        kept = now.draft.questions if questions is None else questions
        draft = drafted(title, body, kept, now.draft.lang, now.draft.trust)
        saved = articles.put(article_id, draft, now.version, gap)
    _print_saved(saved)


@group.tenant_command("from-chat")
def article_from_chat(chat_id: Annotated[str, typer.Argument(help=message("help.chat_id"))]) -> None:
    _print_saved(from_chat.write(chat_id))


def _print_preview(shown: tuple[str, Preview]) -> None:
    article_id, preview = shown
    records = search.of([one.turn_id for one in preview.questions if one.turn_id])
    rows = (
        (
            one.question or (records[one.turn_id].question if one.turn_id in records else None),
            text(f"desk.articles.effect.{one.effect(doc_id_of(article_id))}", terminal_locale()),
            one.before.outcome,
            one.after.outcome,
        )
        for one in preview.questions
    )
    print_table((_records(f"column.{name}") for name in ("question", "effect", "before", "after")), rows)
    typer.echo(message(f"ended.{preview.state}", asked=preview.asked, total=preview.total))


@group.tenant_command("preview", show=_print_preview, form=itemgetter(1))
def article_preview(article_id: ArticleId) -> tuple[str, Preview]:
    with articles_service() as service, progress_bar(message("asking")) as update:
        preview = service.preview(article_id, lambda now: update(total=now.total, completed=now.asked))
    return article_id, preview


@group.tenant_command("publish")
def article_publish(article_id: ArticleId) -> None:
    with articles_service() as service:
        published = service.publish(article_id, articles.get(article_id).version)
    statuses = [gap.status for gap in gaps.of_article(article_id)]
    counts = {"closed": statuses.count("closed"), "unanswered": statuses.count("open")}
    typer.echo(message("published", doc_id=published.doc_id, version=published.version, **counts))


@group.tenant_command("withdraw")
def article_withdraw(article_id: ArticleId) -> None:
    with articles_service() as service:
        service.withdraw(article_id)
    typer.echo(message("withdrawn", article_id=article_id))


@group.tenant_command("remove")
def article_remove(article_id: ArticleId) -> None:
    articles.remove(article_id)
    typer.echo(message("removed", article_id=article_id))


def articles_service() -> closing[Articles]:
    return closing(Articles(Ingest()))
