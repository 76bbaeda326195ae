"""Command line: the same use cases as the HTTP API, for people and scripts. Shared code is in `ui.cli.terminal`."""

import os
import socket
from importlib.metadata import version
from textwrap import shorten
from typing import TYPE_CHECKING, Annotated, get_args

import typer
from pydantic import ValidationError

from components.language.texts import terminal_locale, text
from evaluation.commands import app as evaluate_app
from tenants.backup import restoring
from tenants.core.errors import CallerError, Invalid
from tenants.storage import database, sealed
from ui.cli.articles import article_app
from ui.cli.chat import chat_app
from ui.cli.contradiction import agreement_app, contradiction_app
from ui.cli.document import app as document_app
from ui.cli.evaluation import evaluation_app
from ui.cli.feedback import feedback_app
from ui.cli.index import app as index_app
from ui.cli.ingest import ingest, job_app
from ui.cli.insight import insight_app
from ui.cli.installation import backup, doctor, restore, tenant_invite, tenant_remove, tenant_resume, tenant_suspend
from ui.cli.model import app as models_app
from ui.cli.model import fetch_encoder
from ui.cli.operators import operator_app
from ui.cli.pipelines import app as pipelines_app
from ui.cli.policy import changes_command, policy_command, sign_in_command
from ui.cli.records import audit_app, gap_app, person_app
from ui.cli.relation import edge_app, rejected_app
from ui.cli.replay import replay
from ui.cli.site import site_app
from ui.cli.terminal import (
    DEFAULT_TENANT,
    SUBJECT,
    Group,
    Json,
    LocaleOption,
    TenantOption,
    acting_for,
    checked_locale,
    counted_by,
    ensure_tenant,
    message,
    print_json,
    progress_bar,
    terminal_console,
)
from ui.cli.token import keys_app, token_app
from ui.cli.tool import tool_app
from ui.cli.webhook import webhook_app

if TYPE_CHECKING:
    from rich.console import Console

    from pipelines.ask.contract import AskRequest, TurnAnswer

EXCERPT_SHOWN = 160
_DEMO_CONTACT = "anna@example.com"
"""Contact used for the showcase questions."""


app = typer.Typer(
    cls=Group,
    help=message("help.app"),
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(f"opora {version('opora')}")
        raise typer.Exit


@app.callback()
def main_options(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help=message("help.version"))
    ] = False,
) -> None:
    """Options that precede any command."""


tenants_app = typer.Typer(help=message("help.tenant"), no_args_is_help=True)
app.add_typer(tenants_app, name="tenant")
tenants_app.command("policy", help=text("policy.help.policy", terminal_locale()))(policy_command)
for act, command in (
    ("suspend", tenant_suspend),
    ("resume", tenant_resume),
    ("invite", tenant_invite),
    ("remove", tenant_remove),
):
    tenants_app.command(act, help=text(f"installation.help.{act}", terminal_locale()))(command)
app.command("backup", help=text("installation.help.backup", terminal_locale()))(backup)
app.command("doctor", help=text("installation.help.doctor", terminal_locale()))(doctor)
app.command("restore", help=text("installation.help.restore", terminal_locale()))(restore)
tenants_app.command("sign-in", help=text("policy.help.sign_in", terminal_locale()))(sign_in_command)
tenants_app.command("changes", help=text("policy.help.changes", terminal_locale()))(changes_command)
app.command("ingest", help=message("help.ingest"))(ingest)
app.add_typer(job_app, name="job")
app.add_typer(edge_app, name="edge")
app.add_typer(rejected_app, name="rejected")
app.add_typer(contradiction_app, name="contradiction")
app.add_typer(agreement_app, name="agreement")
app.add_typer(tool_app, name="tool")
app.add_typer(token_app, name="token")
app.add_typer(keys_app, name="keys")
app.add_typer(site_app, name="site")
app.add_typer(chat_app, name="chat")
app.add_typer(webhook_app, name="webhook")
app.add_typer(operator_app, name="operator")
app.add_typer(audit_app, name="audit")
app.add_typer(insight_app, name="insight")
app.add_typer(evaluation_app, name="evaluation")
app.add_typer(gap_app, name="gap")
app.add_typer(article_app, name="article")
app.add_typer(feedback_app, name="feedback")
app.add_typer(person_app, name="person")
app.command("replay", help=text("records.help.replay", terminal_locale()))(replay)
app.add_typer(evaluate_app, name="evaluate")
app.add_typer(pipelines_app, name="pipeline")
app.add_typer(document_app, name="document")
app.add_typer(index_app, name="index")
app.add_typer(models_app, name="models")


@app.command(help=message("help.demo"))
def demo() -> None:
    """Set up the demo shop, ask its showcase questions, and fail if any outcome differs from the expected one."""
    from evaluation.datasets.fixture import DEMO, questions
    from pipelines.ask.usecase import Ask
    from pipelines.ingest.usecase import Ingest
    from settings import get_settings
    from tenants.accounts import policy

    fetch_encoder()
    tenants = {locale: f"demo-{locale}" for locale in questions().shops}
    for locale, shop in questions().shops.items():
        ensure_tenant(tenants[locale], locale, shop.name)
        with acting_for(tenants[locale]), progress_bar(message("demo.preparing")) as progress:
            ingest = Ingest()
            ingest.run_path(DEMO / locale, prune=True, progress=counted_by(progress))
            if ingest.rebuild_due():
                ingest.rebuild().finish()
            if (policy.current().approved_offers, policy.current().trace_content) != (shop.offers, True):
                policy.change(approved_offers=shop.offers, trace_content=True)
    with acting_for(tenants["ru"]):
        shop = questions().shops["ru"]
        _add_demo_site(shop.name, shop.welcome, shop.suggested)
    operators_of = {locale: _add_demo_operator(tenant) for locale, tenant in tenants.items()}
    Ingest().warm_up()
    ask = Ask()
    ask.warm_up()
    matched = 0
    for question in questions().showcase:
        with acting_for(tenants[question.tenant]):
            answer = ask.answer(_request(question.question, question.tenant, "balanced", _DEMO_CONTACT))
        _print_turn(terminal_console(), answer, question.question)
        if (answer.outcome, answer.refusal_reason) == (question.outcome, question.reason):
            matched += 1
        else:
            terminal_console().print(
                message("demo.unexpected", expected=f"{question.outcome} {question.reason or ''}"), style="bold red"
            )
    ask.close()
    total = len(questions().showcase)
    terminal_console().print("\n" + message("demo.done", matched=matched, total=total))
    terminal_console().print(message("demo.more", tenant=tenants[terminal_locale()]), highlight=False)
    login, password = operators_of[terminal_locale()]
    desk = message("demo.desk", address=f"{get_settings().address}/desk", login=login, password=password)
    terminal_console().print(desk, highlight=False)
    terminal_console().print(message("demo.chat", address=f"{get_settings().address}/demo"), highlight=False)
    if matched < total:
        raise typer.Exit(1)


def _add_demo_site(name: str, welcome: str, suggested: tuple[str, ...]) -> None:
    """Return the site of the demo shop. It allows only the service's own origin to show the widget."""
    from tenants.chats import sites
    from ui.pages import DEMO_SITE

    if DEMO_SITE in {site.key for site in sites.own()}:
        return
    sites.add(name, [], sites.SiteConfig(welcome=welcome, suggested=suggested), key=DEMO_SITE)


def _add_demo_operator(tenant: str) -> tuple[str, str]:
    """Create an account for the demo shop's desk; return the login and a new password."""
    from secrets import token_hex

    from tenants.desk import operators

    password = token_hex(8)
    with acting_for(tenant):
        if tenant in {operator.login for operator in operators.all()}:
            operators.set_password(tenant, password)
        else:
            operators.add(tenant, password, role="admin")
    return tenant, password


@app.command(help=message("help.serve"))
def serve(
    port: Annotated[int | None, typer.Option(help=message("help.port"), min=1, max=65535)] = None,
    host: Annotated[str | None, typer.Option(help=message("help.host"))] = None,
) -> None:
    """Run the service until it is stopped. Settings come from the environment; options override them."""
    from settings import get_settings

    overrides = {name: str(value) for name, value in (("OPORA_PORT", port), ("OPORA_HOST", host)) if value is not None}
    os.environ.update(overrides)
    get_settings.cache_clear()
    settings = get_settings()
    restoring.check_finished(settings)
    sealed.check_given(settings)
    _check_port(settings.host, settings.port)
    database.check(settings)
    from app import serve as serve_http
    from tenants.desk import first_run

    fetch_encoder()
    typer.echo(message("serve.listening", host=settings.host, port=settings.port), err=True)
    if (secret := first_run.open_link()) is not None:
        typer.echo(message("serve.first_run", link=f"{settings.browsed_at}/desk/first-run/{secret}"), err=True)
    serve_http(settings)


@app.command(help=message("help.migrate"))
def migrate() -> None:
    """Upgrade the records' database to this version."""
    before, now = database.migrate()
    typer.echo(message("migrate.unchanged" if before == now else "migrate.done", before=before or "-", now=now))


def _check_port(host: str, port: int) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as taken:
            raise CallerError("port_taken", port=port) from taken


@tenants_app.command("add", help=message("help.tenant_add"))
def tenant_add(
    tenant_id: Annotated[str, typer.Argument(help=message("help.tenant_id"))],
    name: Annotated[str, typer.Option(help=message("help.name"))] = "",
    locale: LocaleOption = "",
) -> None:
    """Register a tenant."""
    from tenants.accounts.registry import Registry

    Registry().add(tenant_id, name=name, locale=checked_locale(locale))
    typer.echo(message("tenant.added", tenant_id=tenant_id))


@tenants_app.command("list", help=message("help.tenant_list"))
def tenant_list(as_json: Json = False) -> None:
    """Print every registered tenant."""
    from dataclasses import asdict

    from tenants.accounts.registry import Registry
    from tenants.insight import totals
    from tenants.insight.totals import TenantSize

    tenants, sizes = Registry().list(), totals.by_tenant()
    if as_json:
        rows = [
            {
                "tenant_id": tenant.tenant_id,
                "name": tenant.name,
                "locale": tenant.locale,
                "created_at": f"{tenant.created_at:%FT%TZ}",
                "suspended_at": f"{tenant.suspended_at:%FT%TZ}" if tenant.suspended_at else None,
                **asdict(sizes.get(tenant.tenant_id, TenantSize())),
            }
            for tenant in tenants
        ]
        print_json(rows)
        return
    if not tenants:
        typer.echo(message("tenant.none"), err=True)
        return
    from rich.table import Table

    table = Table()
    for column in ("id", "name", "state", "documents", "chats", "storage", "created_at"):
        # Never truncate ids: they are copied into the next command.
        table.add_column(message(f"tenant.{column}"), overflow="fold" if column == "id" else "ellipsis")
    for tenant in tenants:
        size = sizes.get(tenant.tenant_id, TenantSize())
        named = text(f"desk.tenants.state.{totals.state(tenant, size)}", terminal_locale())
        figures = str(size.documents), str(size.chats), f"{size.storage / 1_000_000:.1f}"
        table.add_row(tenant.tenant_id, tenant.name, named, *figures, f"{tenant.created_at:%F}")
    terminal_console().print(table)


@tenants_app.command("token", help=message("help.tenant_token"))
def tenant_token(
    tenant_id: Annotated[str, typer.Argument(help=message("help.tenant_id"))],
    scope: Annotated[list[str], typer.Option(help=message("help.scope"))] = ["ask"],  # noqa: B006 - Typer copies defaults
    ttl: Annotated[int, typer.Option(help=message("help.ttl"), min=1)] = 3600,
    subject: Annotated[str, typer.Option(help=message("help.subject"))] = SUBJECT,
) -> None:
    """Print only a signed token for a registered tenant, so that scripts can capture it."""
    from tenants.access import issued_tokens
    from tenants.core.context import SCOPES

    for name in scope:
        if name not in SCOPES:
            raise Invalid("scope_unknown", scope=name)
    with acting_for(tenant_id):
        _, token = issued_tokens.issue(subject=subject, scopes=scope, ttl_seconds=ttl)
    typer.echo(token)


@app.command(help=message("help.ask"))
def ask(
    question: Annotated[str, typer.Argument(help=message("help.question"))],
    tenant: TenantOption = DEFAULT_TENANT,
    as_json: Json = False,
    quality: Annotated[str, typer.Option(help=message("help.quality"))] = "balanced",
    locale: LocaleOption = "",
    contact: Annotated[str, typer.Option(help=message("help.contact"))] = "",
) -> None:
    """Answer one question as the service would."""
    request = _request(question, checked_locale(locale), quality, contact)
    with acting_for(tenant):
        from pipelines.ask.usecase import Ask

        engine = Ask()
        answer = engine.answer(request)
        engine.close()
    if as_json:
        typer.echo(answer.encoded)
    else:
        _print_turn(terminal_console(), answer, question)


def _request(question: str, locale: str, quality: str, contact: str = "") -> "AskRequest":
    from components.turn import Quality
    from pipelines import problems
    from pipelines.ask.contract import AskRequest

    if quality not in get_args(Quality):
        raise Invalid("quality_unknown", quality=quality)
    try:
        question.encode()
    except UnicodeEncodeError as broken:
        raise Invalid("question_unreadable") from broken
    try:
        asked = {"question": question, "locale": locale or None, "quality": quality, "contact": contact or None}
        return AskRequest.model_validate(asked)
    except ValidationError as invalid:
        raise problems.from_validation(invalid) from invalid


def _print_turn(console: "Console", answer: "TurnAnswer", question: str) -> None:
    """Print a turn for people: question, outcome, answer with [N], then the source of each [N]."""
    from rich.markup import escape

    outcome = message(f"outcome.{answer.outcome}")
    reason = f" / {answer.refusal_reason}" if answer.refusal_reason else ""
    spent = message("turn.milliseconds", value=f"{answer.meta.latency_ms:.1f}")
    colour = "green" if answer.outcome == "answered" else "yellow"
    console.print(f"\n[bold]{escape(question)}[/]")
    console.print(f"[{colour}]{answer.outcome}{reason}[/] ({outcome}), {spent}", highlight=False)
    if answer.answer.notice:
        console.print(f"{message('turn.notice')}: {escape(answer.answer.notice)}", style="italic", highlight=False)
    console.print(escape(answer.answer.text), highlight=False)
    for option in answer.clarification.options if answer.clarification else ():
        console.print(f"  • {escape(option)}", highlight=False)
    for article in answer.articles:
        path = " › ".join(filter(None, (article.title, article.heading)))
        link = f" — {article.url}" if article.url else ""
        console.print(f"  • {escape(path + link)}", highlight=False)
        console.print(f"    [dim]{escape(article.snippet)}[/]", highlight=False)
    for citation in answer.citations:
        path = " › ".join(filter(None, (citation.title, citation.heading)))
        console.print(f"  [dim]\\[{citation.index}] {escape(path)} ({escape(citation.doc_id)})[/]", highlight=False)
        excerpt = shorten(citation.excerpt, EXCERPT_SHOWN, placeholder="…")
        console.print(f"      [dim]«{escape(excerpt)}»[/]", highlight=False)


def main() -> None:
    """Run the `opora` command."""
    os.umask(0o077)  # Keep our files private to the owner, whatever the folder's permissions.
    app()


if __name__ == "__main__":
    main()
