"""`opora ask`: one question, answered as the service would."""

import logging
import re
from itertools import groupby
from textwrap import shorten
from time import monotonic
from typing import Annotated, get_args

import typer
from rich.console import Console
from rich.markdown import Markdown
from rich.markup import escape

from components.language.marks import on_one_line
from components.language.texts import number, terminal_locale, text_or
from components.models.calls import collect_calls, for_models
from components.turn import Quality
from pipelines.ask.contract import ArticlePart, AskRequest, CitationPart, TurnAnswer
from pipelines.ask.steps import collect_faults
from pipelines.ask.usecase import Ask
from settings import get_settings
from tenants.core.errors import Invalid
from ui.cli.terminal import (
    Json,
    LocaleOption,
    TenantOption,
    acting_for,
    checked_locale,
    chosen_tenant,
    message,
    terminal_console,
    texts,
)

EXCERPT_SHOWN = 160
_MARKS_AFTER_TABLE = re.compile(r"(?<=\|)((?: *\[\d+\])+)$")


def ask(
    question: Annotated[str, typer.Argument(help=message("help.question"))],
    tenant: TenantOption = "",
    as_json: Json = False,
    quality: Annotated[str, typer.Option(help=message("help.quality"))] = "balanced",
    locale: LocaleOption = "",
    contact: Annotated[str, typer.Option(help=message("help.contact"))] = "",
) -> None:
    asked = request(question, checked_locale(locale), quality, contact)
    if not as_json:
        for name in ("opora.models", "opora.steps"):
            logging.getLogger(name).setLevel(logging.ERROR)  # `turn.degraded` is shown instead
    with acting_for(chosen_tenant(tenant)):
        engine = Ask()
        ends_at = monotonic() + for_models(get_settings().turn_timeout_seconds)
        with collect_faults() as faults, collect_calls(ends_at):
            answer = engine.answer(asked)
        engine.close()
    if as_json:
        typer.echo(answer.encoded)
    else:
        print_turn(terminal_console(), answer, question)
    for fault in faults:
        typer.echo(texts("cli")("turn.fault", fault=fault), err=True)
    if answer.outcome == "failed":
        raise typer.Exit(1)


def request(question: str, locale: str, quality: str, contact: str = "") -> AskRequest:
    from pipelines import problems  # imports FastAPI

    if quality not in get_args(Quality):
        raise Invalid("quality_unknown", quality=quality)
    with Invalid("question_unreadable").instead_of(UnicodeEncodeError):
        question.encode()
    asked = {"question": question, "locale": locale or None, "quality": quality, "contact": contact or None}
    return problems.checked(AskRequest, **asked)


def print_turn(console: Console, answer: TurnAnswer, question: str, locale: str | None = None) -> None:
    """Print a turn for people: question, outcome, answer with [N], then the source of each [N]."""
    say = texts("cli", locale)
    outcome = _outcome(answer, locale)
    spent = say("turn.milliseconds", value=number(answer.meta.latency_ms, locale=locale or terminal_locale()))
    colour = "green" if answer.outcome == "answered" else "yellow"
    console.print(f"\n[bold]{escape(question)}[/]")
    console.print(f"[{colour}]{outcome}[/], {spent}", highlight=False)
    if answer.answer.notice:
        console.print(escape(answer.answer.notice), style="italic", highlight=False)
    _print_text(console, answer.answer.text)
    offered = {title for article in answer.articles for title in (article.title, _path(article))}
    for option in answer.clarification.options if answer.clarification else ():
        if option in offered:
            continue
        console.print(f"  • {escape(option)}", highlight=False)
    for article in answer.articles:
        path = _path(article)
        link = f" — {article.url}" if article.url else ""
        console.print(f"  • {escape(path + link)}", highlight=False)
        console.print(f"    [dim]{escape(article.snippet)}[/]", highlight=False)
        if article.sections:
            listed = say("turn.sections", headings=" · ".join(section.heading for section in article.sections))
            console.print(f"    [dim]{escape(listed)}[/]", highlight=False)
    for citation in answer.citations:
        path = _path(citation)
        if citation.origin == "related" and not citation.cited:
            console.print(f"  [dim]{escape(say('turn.related', path=path))}[/]", highlight=False)
            continue
        console.print(f"  [dim]\\[{citation.index}] {escape(path)} ({escape(citation.doc_id)})[/]", highlight=False)
        if citation.excerpt not in answer.answer.text:
            excerpt = shorten(on_one_line(citation.excerpt), EXCERPT_SHOWN, placeholder="…")
            quoted = say("turn.excerpt", excerpt=excerpt)
            console.print(f"      [dim]{escape(quoted)}[/]", highlight=False)
    if answer.meta.degraded:
        steps = (text_or(step, f"desk.task.{step}", terminal_locale()) for step in answer.meta.degraded)
        console.print(escape(say("turn.degraded", steps=", ".join(steps))), style="yellow")


def _print_text(console: Console, words: str) -> None:
    """Print an answer; a Markdown table in it becomes a table of the terminal, with its `[N]` below."""
    for is_table, lines in groupby(words.split("\n"), lambda line: line.startswith("|")):
        block = "\n".join(lines)
        if is_table:
            table, *marks = _MARKS_AFTER_TABLE.split(block, maxsplit=1)
            console.print(Markdown(table))
            if marks:
                console.print(escape(marks[0].strip()), highlight=False)
        else:
            console.print(escape(block), highlight=False)


def _path(source: ArticlePart | CitationPart) -> str:
    return " › ".join(filter(None, (source.title, source.heading)))


def _outcome(answer: TurnAnswer, locale: str | None) -> str:
    if answer.routing.intent == "chitchat":
        return texts("cli.outcome", locale)("small_talk")
    outcome = texts("cli.outcome", locale)(answer.outcome)
    if answer.articles and answer.refusal_reason == "no_relevant_context":
        # The offered articles may hold the answer.
        return texts("cli.turn", locale)("articles")
    reason = texts("desk.reason", locale)(answer.refusal_reason) if answer.refusal_reason else outcome
    return outcome if reason in outcome else f"{outcome}: {reason}"
