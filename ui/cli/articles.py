"""`opora article`: articles written to close knowledge gaps."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from components.language.texts import terminal_locale, text
from ui.cli.records import print_table
from ui.cli.terminal import DEFAULT_TENANT, Json, TenantOption, acting_for, print_json, progress_bar

if TYPE_CHECKING:
    from pipelines.ask.articles.usecase import Articles


def message(key: str, **params: str | int) -> str:
    """Return a text of these commands in the terminal's language."""
    return text(f"articles.{key}", terminal_locale(), **params)


article_app = typer.Typer(help=message("help.article"), no_args_is_help=True)

ArticleId = Annotated[str, typer.Argument(help=message("help.article_id"))]
Title = Annotated[str, typer.Option("--title", help=message("help.title"))]
File = Annotated[Path, typer.Argument(help=message("help.file"), exists=True, dir_okay=False)]
Questions = Annotated[list[str] | None, typer.Option("--question", help=message("help.question"))]
Gaps = Annotated[list[str] | None, typer.Option("--gap", help=message("help.gap"))]


@article_app.command("list", help=message("help.list"))
def article_list(tenant: TenantOption = DEFAULT_TENANT, as_json: Json = False) -> None:
    """Print the articles, most recently changed first."""
    with acting_for(tenant):
        from tenants.desk import articles

        listed = articles.page(limit=articles.MOST)
    if as_json:
        from dataclasses import asdict

        from pipelines.ask.articles.contract import ListedPart

        print_json([ListedPart(**asdict(one)).model_dump(mode="json") for one in listed])
        return
    rows = (
        (
            one.article_id,
            one.title,
            str(one.version),
            str(one.published_version or ""),
            f"{one.updated_at:%F %T}",
        )
        for one in listed
    )
    print_table(("article_id", "title", "version", "published", "at"), rows)


@article_app.command("show", help=message("help.show"))
def article_show(article_id: ArticleId, tenant: TenantOption = DEFAULT_TENANT) -> None:
    """Print an article with its last preview, as JSON."""
    with acting_for(tenant):
        from pipelines.ask.articles.contract import article_part
        from tenants.desk import articles

        print_json(article_part(articles.get(article_id)).model_dump(mode="json"))


@article_app.command("write", help=message("help.write"))
def article_write(
    file: File,
    title: Title,
    questions: Questions = None,
    gap: Gaps = None,
    article_id: Annotated[str | None, typer.Option("--article", help=message("help.rewrite"))] = None,
    tenant: TenantOption = DEFAULT_TENANT,
) -> None:
    """Save a Markdown file as a draft: a new one, or the next version of an article."""
    with acting_for(tenant):
        from pipelines.ask.articles.usecase import drafted
        from tenants.core.errors import Invalid
        from tenants.desk import articles

        try:
            body = file.read_text(encoding="utf-8")
        except UnicodeDecodeError as unreadable:
            raise Invalid("article_unreadable", path=str(file)) from unreadable
        if article_id is None:
            saved = articles.add(drafted(title, body, questions or ()), gap or ())
        else:
            now = articles.get(article_id)
            kept = now.draft.questions if questions is None else questions
            draft = drafted(title, body, kept, now.draft.lang, now.draft.trust)
            saved = articles.put(article_id, draft, now.version, gap)
    typer.echo(message("saved", article_id=saved.article_id, version=saved.version))


@article_app.command("from-chat", help=message("help.from_chat"))
def article_from_chat(
    chat_id: Annotated[str, typer.Argument(help=message("help.chat_id"))], tenant: TenantOption = DEFAULT_TENANT
) -> None:
    """Save a chat's question and answer as a draft."""
    with acting_for(tenant):
        from pipelines.ask.articles import from_chat

        saved = from_chat.write(chat_id)
    typer.echo(message("saved", article_id=saved.article_id, version=saved.version))


@article_app.command("preview", help=message("help.preview"))
def article_preview(article_id: ArticleId, tenant: TenantOption = DEFAULT_TENANT, as_json: Json = False) -> None:
    """Preview the article's effect on answers."""
    with acting_for(tenant), articles_service() as service, progress_bar(message("asking")) as progress:
        from tenants.audit import search
        from tenants.desk.articles import doc_id_of

        task = progress.task_ids[0]
        preview = service.preview(article_id, lambda now: progress.update(task, total=now.total, completed=now.asked))
        records = search.of([one.turn_id for one in preview.questions if one.turn_id])
    if as_json:
        print_json(preview.model_dump(mode="json"))
        return
    rows = (
        (
            one.question or (records[one.turn_id].question if one.turn_id in records else None) or "",
            text(f"desk.articles.effect.{one.effect(doc_id_of(article_id))}", terminal_locale()),
            one.before.outcome,
            one.after.outcome,
        )
        for one in preview.questions
    )
    print_table(("question", "effect", "before", "after"), rows)
    typer.echo(message(f"ended.{preview.state}", asked=preview.asked, total=preview.total))


@article_app.command("publish", help=message("help.publish"))
def article_publish(article_id: ArticleId, tenant: TenantOption = DEFAULT_TENANT) -> None:
    """Publish the newest version to the knowledge base."""
    with acting_for(tenant), articles_service() as service:
        from tenants.desk import articles
        from tenants.knowledge import gaps

        published = service.publish(article_id, articles.get(article_id).version)
        statuses = [gap.status for gap in gaps.of_article(article_id)]
    counts = {"closed": statuses.count("closed"), "unanswered": statuses.count("open")}
    typer.echo(message("published", doc_id=published.doc_id, version=published.version, **counts))


@article_app.command("withdraw", help=message("help.withdraw"))
def article_withdraw(article_id: ArticleId, tenant: TenantOption = DEFAULT_TENANT) -> None:
    """Remove the article from the knowledge base."""
    with acting_for(tenant), articles_service() as service:
        service.withdraw(article_id)
    typer.echo(message("withdrawn", article_id=article_id))


@article_app.command("remove", help=message("help.remove"))
def article_remove(article_id: ArticleId, tenant: TenantOption = DEFAULT_TENANT) -> None:
    """Delete an unpublished draft."""
    with acting_for(tenant):
        from tenants.desk import articles

        articles.remove(article_id)
    typer.echo(message("removed", article_id=article_id))


@contextmanager
def articles_service() -> "Iterator[Articles]":
    """Provide the articles of the tenant in context; questions run in this process."""
    from pipelines.ask.articles.usecase import Articles
    from pipelines.ingest.article import ArticleIngest
    from pipelines.ingest.usecase import Ingest

    service = Articles(ArticleIngest(Ingest()))
    try:
        yield service
    finally:
        service.close()
