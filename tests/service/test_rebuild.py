"""An index rebuilt, switched and rolled back under questions, as `evaluation.bench_rebuild` does it at full size."""

import httpx

from evaluation.bench_rebuild import switching
from evaluation.server import Served
from tenants.context import Tenant
from tests.service.serving import Server

QUESTIONS = (
    "Что значит код E20?",
    "Вода не поступает, код E10",
    "Сколько дней на возврат товара?",
    "Кто открыл Америку?",
)


def test_no_question_notices_a_switch(server: Server, acme: httpx.Client) -> None:
    measured = switching(Served(server.port, server.process.pid), Tenant("acme", "anna"), QUESTIONS, 60)
    assert measured.asked >= 60
    assert measured.rebuilds >= 1
    assert (measured.failed, measured.empty, measured.changed) == (0, 0, 0)
