"""`opora demo`: the knowledge base of an invented shop, ready to look at."""

from secrets import token_hex

import typer

from components.language.texts import terminal_locale
from evaluation.datasets.fixture import DEMO, questions
from pipelines.ask.usecase import Ask
from pipelines.ingest.usecase import Ingest
from settings import get_settings
from tenants.accounts import policy
from tenants.chats import sites
from tenants.desk import operators
from ui.cli.ask import print_turn, request
from ui.cli.model import fetch_encoder
from ui.cli.terminal import acting_for, counted_by, ensure_tenant, message, progress_bar, terminal_console
from ui.pages import DEMO_SITE

_DEMO_CONTACT = "anna@example.com"
"""Contact used for the showcase questions."""


def demo() -> None:
    """Set up the demo shop, ask its showcase questions, and fail if any outcome differs from the expected one."""
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
        _add_site(shop.name, shop.welcome, shop.suggested)
    operators_of = {locale: _add_operator(tenant) for locale, tenant in tenants.items()}
    matched, total = _ask_showcase(), len(questions().showcase)
    console = terminal_console()
    console.print("\n" + message("demo.done", matched=matched, total=total))
    console.print(message("demo.more", tenant=tenants[terminal_locale()]), highlight=False)
    login, password = operators_of[terminal_locale()]
    desk = message("demo.desk", address=f"{get_settings().address}/desk", login=login, password=password)
    console.print(desk, highlight=False)
    console.print(message("demo.chat", address=f"{get_settings().address}/demo"), highlight=False)
    if matched < total:
        raise typer.Exit(1)


def _ask_showcase() -> int:
    """Ask the showcase questions; return how many have the expected outcome."""
    Ingest().warm_up()
    ask = Ask()
    ask.warm_up()
    matched = 0
    for question in questions().showcase:
        with acting_for(f"demo-{question.tenant}"):
            answer = ask.answer(request(question.question, question.tenant, "balanced", _DEMO_CONTACT))
        print_turn(terminal_console(), answer, question.question)
        if (answer.outcome, answer.refusal_reason) == (question.outcome, question.reason):
            matched += 1
        else:
            expected = f"{question.outcome} {question.reason or ''}"
            terminal_console().print(message("demo.unexpected", expected=expected), style="bold red")
    ask.close()
    return matched


def _add_site(name: str, welcome: str, suggested: tuple[str, ...]) -> None:
    """Add the site of the demo shop. It allows only the service's own origin to show the widget."""
    if DEMO_SITE in {site.key for site in sites.own()}:
        return
    sites.add(name, [], sites.SiteConfig(welcome=welcome, suggested=suggested), key=DEMO_SITE)


def _add_operator(tenant: str) -> tuple[str, str]:
    """Create an account for the demo shop's desk; return the login and a new password."""
    password = token_hex(8)
    with acting_for(tenant):
        if tenant in {operator.login for operator in operators.all()}:
            operators.set_password(tenant, password)
        else:
            operators.add(tenant, password, role="admin")
    return tenant, password
