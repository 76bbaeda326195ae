"""`opora demo`: the knowledge base of an invented shop, ready to look at."""

import sys
from secrets import token_hex
from shutil import which
from typing import Annotated

import typer

from components.language.texts import terminal_locale
from evaluation.datasets.fixture import DEMO, Shop, questions
from pipelines.ask.usecase import Ask
from pipelines.ingest.usecase import Ingest
from settings import get_settings
from tenants.accounts import policy
from tenants.chats import sites
from tenants.desk import operators
from ui.cli.ask import print_turn, request
from ui.cli.model import fetch_encoder
from ui.cli.terminal import (
    acting_for,
    checked_locale,
    counted_by,
    ensure_tenant,
    message,
    progress_bar,
    terminal_console,
    texts,
)
from ui.pages import DEMO_SITES

_DEMO_CONTACT = "anna@example.com"


def demo(locale: Annotated[str, typer.Option(help=message("help.demo_locale"))] = "") -> None:
    """Set up the demo shop, ask its showcase questions, and fail if any outcome differs from the expected one."""
    locale = checked_locale(locale) or terminal_locale()
    shop, tenant = questions().shops[locale], f"demo-{locale}"
    fetch_encoder()
    ensure_tenant(tenant, locale, shop.name)
    with acting_for(tenant):
        _load(locale)
        wanted = {"approved_offers": shop.offers, "handoff_channel": shop.contact, "trace_content": True}
        if policy.current().model_dump(include=set(wanted)) != wanted:
            policy.change(**wanted)
        _add_site(DEMO_SITES[locale], shop)
        password = _set_operator(tenant, shop.operator)
        matched, total = _ask_showcase(shop, locale), len(shop.showcase)
    say, address = texts("cli", locale), get_settings().address
    for line in (
        "\n" + say("demo.done", matched=matched, total=total),
        *([] if which("opora") else [say("demo.activate", folder=sys.prefix)]),
        say("demo.more", tenant=tenant),
        say("demo.desk", address=f"{address}/desk", login=tenant, password=password),
        say("demo.company", tenant=tenant),
        say("demo.chat", address=f"{address}/demo"),
    ):
        terminal_console().print(line, highlight=False)
    if matched < total:
        raise typer.Exit(1)


def _load(locale: str) -> None:
    say = texts("cli", locale)
    typer.echo(say("demo.preparing", count=sum(1 for _ in (DEMO / locale).iterdir())), err=True)
    ingest = Ingest()
    with progress_bar(say("ingest.reading")) as progress:
        ingest.run_path(DEMO / locale, prune=True, progress=counted_by(progress))
        if ingest.rebuild_due():
            ingest.rebuild().finish()
    ingest.warm_up()


def _ask_showcase(shop: Shop, locale: str) -> int:
    say = texts("cli", locale)
    ask = Ask()
    ask.warm_up()
    matched = 0
    terminal_console().print("\n" + say("demo.customer", contact=_DEMO_CONTACT), highlight=False)
    for question in shop.showcase:
        answer = ask.answer(request(question.question, locale, "balanced", _DEMO_CONTACT))
        if question.note:
            terminal_console().print(f"\n{question.note}", style="italic", highlight=False)
        print_turn(terminal_console(), answer, question.question, locale)
        if (answer.outcome, answer.refusal_reason) == (question.outcome, question.reason):
            matched += 1
        else:
            expected = f"{question.outcome} {question.reason or ''}"
            terminal_console().print(say("demo.unexpected", expected=expected), style="bold red")
    ask.close()
    return matched


def _add_site(key: str, shop: Shop) -> None:
    """Add the site of the demo shop. It allows only the service's own origin to show the widget."""
    if key not in {site.key for site in sites.own()}:
        sites.add(shop.name, [], sites.SiteConfig(welcome=shop.welcome, suggested=shop.suggested), key=key)


def _set_operator(login: str, name: str) -> str:
    """Return a new password of the account for the demo shop's desk, which is created if it does not exist."""
    password = token_hex(8)
    if login in {operator.login for operator in operators.all()}:
        operators.set_password(login, password)
    else:
        operators.add(login, password, role="admin", name=name)
    return password
