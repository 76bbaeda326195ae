"""A turn of each outcome, as the service sends it."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from pipelines.ask.contract import TurnAnswer

Json: TypeAlias = dict[str, object]

PASSAGE = (
    "Код E20 означает, что вода не сливается. Выключите машину и очистите фильтр сливного насоса. "
    "Проверьте, не пережат ли сливной шланг."
)
EXCERPT = "Выключите машину и очистите фильтр сливного насоса."
STEPS = (
    "Вода не сливается: скорее всего, засорился фильтр [1]. Сделайте так:\n\n1. Выключите машину из розетки.\n"
    "2. Откройте крышку фильтра.\n3. Подставьте таз и слейте воду.\n4. Выверните фильтр и промойте его.\n"
    "5. Проверьте, свободно ли вращается крыльчатка.\n6. Закрутите фильтр и запустите «Слив» [2].\n"
)


def citation(index: int, title: str, excerpt: str, text: str, *, url: str | None = None) -> tuple[Json, Json]:
    """Return a citation and its source."""
    start = text.index(excerpt)
    cited: Json = {
        "index": index,
        "doc_id": f"doc-{index}",
        "chunk_id": f"chunk-{index}",
        "title": title,
        "heading": "Код E20" if index == 1 else "Как очистить фильтр",
        "excerpt": excerpt,
        "span": [start, start + len(excerpt)],
        "url": url,
        "cited": True,
        "origin": "primary",
        "trust": "accepted",
        "score": 0.93,
        "updated_at": "2026-09-14T00:00:00Z",
    }
    return cited, {"source": f"doc-{index}.md", "page_content": text, "snippet": excerpt, "score": 0.93}


def _articles() -> list[Json]:
    rows = (
        (
            "Доставка",
            "Сколько стоит доставка",
            "Доставка по Нижнему Новгороду стоит 490 ₽.",
            "https://pristan.example/d",
        ),
        ("Возврат товара", "Сроки", "Исправный товар можно вернуть в течение 14 дней.", None),
    )
    return [
        {"doc_id": f"d{n}", "title": title, "heading": heading, "url": url, "snippet": snippet, "score": 0.41}
        for n, (title, heading, snippet, url) in enumerate(rows)
    ]


def turn(outcome: str, text: str, **changes: object) -> Json:
    """Return a complete `turn.v1`: the simplest one with the given changes."""
    answer: Json = {"text": text, "notice": changes.pop("notice", None), "verified": False, "missing": []}
    answer |= {name: changes.pop(name) for name in ("verified", "missing") if name in changes}
    full_turn: Json = {
        "schema": "turn.v1",
        "turn_id": f"turn-{outcome}",
        "trace_id": "",
        "session_id": "",
        "locale": "ru",
        "outcome": outcome,
        "refusal_reason": None,
        "verdict": {"route": "auto", "reasons": [], "iterations": 1, "max_iterations": 2, "gates": []},
        "answer": answer,
        "citations": [],
        "sources": [],
        "claims": [],
        "scores": {
            "quality": 0,
            "relevance": 0,
            "factuality": {"value": 100, "status": "no_claims"},
            "adequacy": 0,
            "confidence": 0,
            "hallucination": 0,
        },
        "routing": {"intent": "answerable", "risk": "none", "complexity": "simple"},
        "articles": [],
        "suggested_questions": [],
        "clarification": None,
        "handoff": None,
        "meta": {
            "provider": "",
            "model": "",
            "quality": "balanced",
            "cached": False,
            "latency_ms": 0,
            "latency_ms_by_step": {},
            "iterations": [],
            "llm_calls": 0,
            "tokens": {},
            "cost_usd": None,
            "chunks": {"retrieved": 0, "graded": 0, "used": 0},
            "beside": {"related": [], "rejected": [], "conflicts": []},
            "filters": {},
            "query": {"original": "", "search": "", "hyde": False, "recovery": "none"},
            "degraded": [],
            "prompt_version": "",
        },
        **changes,
    }
    return TurnAnswer.model_validate(full_turn).model_dump(mode="json")


def _ticket() -> Json:
    return {
        "status": "open",
        "ticket_id": "T-20417",
        "channel": "help@pristan.example",
        "created_at": None,
        "offer": None,
    }


def _answered() -> Json:
    first = citation(1, "Коды ошибок E10–E30", EXCERPT, PASSAGE, url="https://pristan.example/errors")
    second = citation(2, "Очистка сливного фильтра", "Промойте фильтр.", "Промойте фильтр. Закрутите его до упора.")
    beside = citation(3, "Уход за машиной", "Раз в месяц промывайте фильтр.", "Раз в месяц промывайте фильтр.")
    beside[0].update(cited=False, origin="related", heading="", url="https://pristan.example/care")
    follow_ups = ["Где находится фильтр?", "Что делать, если E20 вернулась?", "Сколько стоит вызов мастера?"]
    return turn(
        "answered",
        STEPS,
        verified=True,
        citations=[first[0], second[0], beside[0]],
        sources=[first[1], second[1], beside[1]],
        suggested_questions=follow_ups,
    )


def _partially() -> Json:
    cited, source = citation(
        1, "Доставка", "Доставка по городу стоит 490 ₽.", "Доставка по городу стоит 490 ₽. Везём каждый день."
    )
    return turn(
        "partially_answered",
        "Доставка по городу стоит 490 ₽ [1].",
        notice="Документ «Доставка» считается устаревшим. Сведения могли измениться.",
        verified=True,
        missing=["доставка в другой регион", "доставка в воскресенье"],
        citations=[cited],
        sources=[source],
        suggested_questions=["Когда привезут заказ?"],
    )


OUTCOMES: Mapping[str, Callable[[], Json]] = {
    "answered": _answered,
    "partially_answered": _partially,
    "low_confidence": lambda: turn(
        "low_confidence",
        "Ближе всего к вопросу эти статьи.",
        notice="Надёжного ответа на этот вопрос в базе знаний не нашлось.",
        articles=_articles(),
    ),
    "clarify": lambda: turn(
        "clarify",
        "Уточните, пожалуйста, о чём вопрос:",
        clarification={"options": ["Возврат исправного товара", "Возврат товара с недостатком"]},
        articles=_articles()[1:],
    ),
    "refused": lambda: turn(
        "refused",
        "В базе знаний нет ответа на этот вопрос, а придумывать его я не буду.",
        refusal_reason="no_relevant_context",
        articles=_articles(),
    ),
    "cannot_answer": lambda: turn(
        "cannot_answer",
        "В базе знаний есть материалы по этой теме, но ответа на ваш вопрос в них нет.",
        refusal_reason="insufficient_context",
        articles=_articles()[:1],
    ),
    "human_followup": lambda: turn(
        "human_followup",
        "Передаю разговор сотруднику, как вы просили.\n\nОбращение T-20417 создано. Сохраните этот номер.",
        refusal_reason="user_request",
        handoff=_ticket(),
    ),
    "high_stakes": lambda: turn(
        "high_stakes",
        "Отменить заказ или подписку может сотрудник, передаю ему ваше сообщение. "
        "Пока он не ответит, всё остаётся в силе.",
        refusal_reason="high_risk",
        handoff=_ticket(),
    ),
    "out_of_scope": lambda: turn(
        "out_of_scope",
        "Этого помощник сделать не может: он только отвечает на вопросы по базе знаний.",
        refusal_reason="out_of_scope",
    ),
    "irrelevant": lambda: turn(
        "irrelevant",
        "Это не связано с товарами и услугами компании, а я отвечаю только о них.",
        refusal_reason="off_topic",
    ),
    "nonsense": lambda: turn(
        "nonsense",
        "Не удалось разобрать сообщение. Напишите, пожалуйста, вопрос обычными словами.",
        refusal_reason="no_intent",
    ),
    "blocked": lambda: turn(
        "blocked",
        "На это сообщение я не отвечаю: в нём есть указания для помощника.",
        refusal_reason="blocked_by_guardrails",
    ),
    "failed": lambda: turn(
        "failed", "Не получилось ответить из-за сбоя на нашей стороне.", refusal_reason="pipeline_error"
    ),
}
