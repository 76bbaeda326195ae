"""`python -m evaluation.benchmarks.desk`: what the desk's pages cost with ten thousand chats.

A real service, asked from another process as a browser asks it: with an operator's session, one page after another.
A table goes to standard error, the same as JSON to standard output.
"""

from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from urllib.parse import quote

import typer

from evaluation.benchmarks import results
from evaluation.benchmarks.load import Client, percentile
from evaluation.benchmarks.server import Served, close_stores, installation, serving
from pipelines import desk_gate
from tenants.accounts.registry import Registry
from tenants.chats import store
from tenants.chats.records import HandoffRequest
from tenants.core.context import Tenant, acting_as
from tenants.desk import operator_sessions, operators

SCHEMA = "bench-desk.v1"
CHATS = 10_000
ROUNDS = 100
WARM_UP = 5
LIMITS = {"first_paint_ms_p95": 300.0, "filter_ms_p95": 100.0}
"""Upper limit of each figure; for the filters, of the slowest one."""

_TENANT = "shop"
_SITES = ("main", "outlet")
_REASONS = ("user_request", "low_confidence", "high_risk")
_ASKED = (
    "Где мой заказ {number}?",
    "Как вернуть товар, если он не подошёл по размеру?",
    "Стиральная машина показывает E20 и не сливает воду",
    "Списали деньги дважды за заказ {number}, верните",
    "Можно ли перенести доставку на субботу?",
)
PAGES: Mapping[str, str] = {
    "first_paint": "/desk",
    "view": "/desk?view=all",
    "words": f"/desk?view=all&q={quote('заказ 4471')}",
    "words_nowhere": f"/desk?view=all&q={quote('нигде')}",
    "site_and_reason": "/desk?view=waiting&site=main&reason=high_risk",
    "chat": "/desk/chat/{chat_id}",
    "similar": "/desk/chat/{chat_id}/similar",
}
FILTERS = ("view", "words", "words_nowhere", "site_and_reason")


def main() -> None:
    """Measure; exit code 1 when a figure is over its limit."""
    with TemporaryDirectory() as temporary, installation(Path(temporary)):
        chat_id, secret = _populate()
        close_stores()
        with serving(Path(temporary)) as served:
            spent = {name: _visit(served, path.format(chat_id=chat_id), secret) for name, path in PAGES.items()}
    figures = {
        f"{name}_ms_p{share}": round(percentile(times, share), 1) for share in (50, 95) for name, times in spent.items()
    }
    figures["filter_ms_p95"] = max(figures[f"{name}_ms_p95"] for name in FILTERS)
    results.finish(SCHEMA, figures, title=f"Pages of the desk, {CHATS} chats", bounds=LIMITS, rounds=ROUNDS)


def _populate() -> tuple[str, str]:
    """Create chats in every state; return the id of a waiting one, and the secret of an operator's session."""
    chance, waiting = Random(20261123), ""  # noqa: S311 - a sample, not a secret
    Registry().add(_TENANT)
    with acting_as(Tenant(_TENANT, "admin")):
        anna = operators.add("anna@shop.example", "снег идёт над рекой", role="operator", name="Анна")
    operator = anna.acting()
    if operator is None:
        raise TypeError("an operator of a tenant acts in it")
    for number in range(CHATS):
        question = _ASKED[number % len(_ASKED)].format(number=4_400_000 + number)
        with acting_as(Tenant(_TENANT, f"v:{number:06x}")):
            chat = store.start(site=chance.choice(_SITES), channel="widget")
            store.post(chat.chat_id, question)
            store.answer(chat.chat_id, chat.version, "Сейчас проверим.", turn_id=f"t{number}", body={}, failed=False)
            if number % 3:
                store.hand_over(chat.chat_id, HandoffRequest(chance.choice(_REASONS), question=question))
        with acting_as(operator):
            if number % 3 == 1:
                store.reply(chat.chat_id, "Здравствуйте! Смотрю ваш вопрос.", seen=9, name=anna.name)
            if number % 3 == 1 and number % 2:
                store.resolve(chat.chat_id)
            elif number % 30 == 4:
                store.snooze(chat.chat_id, datetime.now(UTC) + timedelta(days=1))
            elif number % 3 == 2:
                waiting = chat.chat_id
    return waiting, operator_sessions.begin(anna, address="127.0.0.1", browser="bench")


def _visit(served: Served, path: str, secret: str) -> list[float]:
    """Load a page again and again; return the milliseconds of each time, without the first ones."""
    with closing(Client(served.port, Cookie=f"{desk_gate.COOKIE}={secret}")) as browser:
        loads = [browser.exchange("GET", path) for _ in range(ROUNDS + WARM_UP)]
    if failed := [load.status for load in loads if load.status != 200]:
        raise RuntimeError(f"{path}: {failed[0]}")
    return [load.milliseconds for load in loads[WARM_UP:]]


if __name__ == "__main__":
    typer.run(main)
