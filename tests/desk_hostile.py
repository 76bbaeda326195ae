"""A tenant with hostile content in every text that a customer or an author can write."""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from settings import Settings
from tenants.access import issued_tokens
from tenants.accounts import policy
from tenants.accounts.hours import Hours
from tenants.accounts.registry import Registry
from tenants.audit import store as audit
from tenants.audit.entry import Entry, canonical
from tenants.chats import mail_changes, sites, store
from tenants.chats.change import changing
from tenants.chats.records import Body, HandoffRequest
from tenants.core.context import Tenant, acting_as
from tenants.core.json import Json
from tenants.desk import (
    articles,
    evaluations,
    feedback,
    invitations,
    operator_sessions,
    operators,
    replies,
    sso_providers,
)
from tenants.desk.articles import Draft
from tenants.desk.evaluations import EvaluationRun
from tenants.desk.operators import Operator
from tenants.desk.tables import OperatorRow
from tenants.knowledge import agreements, documents, gaps, rejected
from tenants.knowledge.gaps import Miss
from tenants.knowledge.rejected import Rejected
from tenants.knowledge.tables import ToolRow
from tenants.storage import database
from tenants.work.tables import JobRow
from tests import desk
from tests.audits import entry
from tests.browser.payloads import PAYLOADS
from tests.browser.turns import citation, turn
from tests.service.stored import delivery, finished_job, kept_tool, webhook

TENANT = "hostile"
ALL = "".join(PAYLOADS).replace("\0", "")
WORST = '"><img src=x onerror=hit()>'
"""Short enough for any field; it leaves an attribute and is an element on its own."""

_AUTHOR = Tenant(TENANT, WORST)

Ingest = Callable[[str, list[dict[str, Json]]], object]


def fill(settings: Settings, ingest: Ingest) -> Mapping[str, str]:
    """Fill the tenant; return values for the names in `desk_views.VIEWS`. Needs this process's settings."""
    registry = Registry(settings)
    registry.add(TENANT, name=WORST, locale="ru")
    registry.add("hostile-guest", name=WORST, locale="ru")
    ingest(TENANT, _documents())
    _people()
    with acting_as(_AUTHOR):
        _settings()
        _recorded(settings)
        gap_id, article_id = _articles(settings)
        _doubts()
        _evaluated()
        desk.own_evaluation(PAYLOADS)
    chat_id = _chat()
    with database.across_tenants(write=True) as session:
        session.add(_job())
    return {
        "tenant_id": TENANT,
        "chat_id": chat_id,
        "turn_id": "turn-hostile",
        "gap_id": gap_id,
        "article_id": article_id,
        "doc_id": "hostile",
        "job_id": f"0-of-{TENANT}",
        "key": "hostile-site",
        "name": f"orders-of-{TENANT}",
        "secret": invitations.invite("hostile-guest"),
        "words": "hit",
    }


def operator() -> Operator:
    """Return the user who views the pages, also with a hostile name."""
    with acting_as(Tenant(TENANT, "admin")):
        return operators.get("mallory@hostile")


def _documents() -> list[dict[str, Json]]:
    """Return documents with hostile titles, ids, headings, tags and texts; some are refused for their ids."""
    text = "".join(f"## {one}\n\n{one}\n\n" for one in PAYLOADS)
    shelf: list[dict[str, Json]] = [
        {"doc_id": one, "title": one, "text": one, "tags": [one], "project_key": one, "source": one}
        for one in PAYLOADS[:40]
    ]
    labels: dict[str, Json] = {
        "tags": [*PAYLOADS[:20]],
        "evidence_tier": WORST,
        "source_type": WORST,
        "project_key": WORST,
    }
    shelf += [
        {
            "doc_id": "hostile",
            "title": ALL[:500],
            "text": text,
            "url": 'https://shop.example/"><img/src=x/onerror=hit()>',
            **labels,
        }
    ]
    answer = f"Код E20 означает {WORST}: вода не сливается. Очистите фильтр."
    shelf += [{"doc_id": "errors", "title": f"Код E20 {WORST}", "text": f"## E20 {WORST}\n\n{answer}", "lang": "ru"}]
    return [*shelf, {"doc_id": "hostile/newer", "title": PAYLOADS[0], "text": text, "supersedes": "hostile"}]


def _people() -> None:
    desk.staff(TENANT, {"mallory": "admin"})
    who = operator()
    operator_sessions.begin(who, address=WORST, browser=WORST)
    with database.across_tenants(write=True) as session:
        row = session.get(OperatorRow, who.operator_id)
        assert row is not None
        row.name = WORST
        now = datetime.now(UTC)
        for number, one in enumerate(PAYLOADS):
            about = {"role": "operator", "name": one[:100], "password": "", "created_at": now}
            session.add(OperatorRow(login=f"{number}{one}"[:100], tenant_id=TENANT, **about))


def _settings() -> None:
    for text in PAYLOADS:
        replies.add(text[:100], text)
    site = sites.add(WORST, [], key="hostile-site")
    for text in PAYLOADS:
        consent = {"text": text, "url": "https://shop.example"}
        sites.update(site.key, name=text[:200], config={"welcome": text[:500], "suggested": [text], "consent": consent})
        policy.change(name=text, handoff_channel=text, approved_offers={"custom": text, "cancellation": text})
    policy.change(synonyms=tuple((one[:60], "xx") for one in PAYLOADS if "," not in one and "\n" not in one))
    issued_tokens.issue(subject=WORST, scopes=["ask"], ttl_seconds=60)
    policy.change(hours=Hours(zone="UTC", week={}, away={"ru": WORST}))
    roles = {WORST: "admin"}
    given = {"issuer": "https://id.invalid", "client_id": WORST, "role_claim": WORST, "roles": roles}
    sso_providers.put(sso_providers.parsed(given))
    tool = kept_tool(TENANT)
    described = {"title": ALL[:200], "description": ALL[:1_000], "answer": ALL[:2_000]}
    tool.definition = {**tool.definition, **described, "url": "http://127.0.0.1:9/'><script>hit()</script>"}
    with database.across_tenants(write=True) as session:
        session.add(tool)
        for number, one in enumerate(PAYLOADS):
            definition = {**tool.definition, "title": one[:200], "description": one}
            session.add(ToolRow(tenant_id=TENANT, name=f"tool-{number}", definition=definition, headers={}))
            session.add(webhook(TENANT, f"hook-{number}", one))
        session.flush()
        for number, one in enumerate(PAYLOADS):
            named = {"event": one[:32], "fault": one}
            session.add(delivery(TENANT, f"{number}{WORST}"[:32], f"hook-{number}", **named))


def whole_turn(text: str) -> Body:
    """Return a turn with this text in every text field."""
    cited, source = citation(1, text, text, f"{text} {text}", url="javascript:hit()")
    cited["heading"] = text
    claim = {"text": text, "status": "unsupported", "citations": [1], "quote": text}
    article = {"doc_id": text, "title": text, "heading": text, "url": "javascript:hit()", "snippet": text, "score": 0.4}
    gate = {"name": text, "passed": True, "score": 0.8, "threshold": 0.5}
    verdict = {"route": "auto", "reasons": [text], "iterations": 1, "max_iterations": 2, "gates": [gate]}
    parts = {"citations": [cited], "sources": [source], "claims": [claim], "articles": [article]}
    made = turn("answered", text, notice=text, suggested_questions=[text], missing=[text], verdict=verdict, **parts)
    meta = made["meta"]
    assert isinstance(meta, dict)
    query = {"original": text, "search": text, "hyde": False, "recovery": "none"}
    search = {"took_ms": 1.0, "found": 1, "by_words": 1, "by_meaning": 0, "best_score": 1.0, "cached": True}
    meta |= {"iterations": [{"iteration": 1, "took_ms": 2.0, "retriever": search, "reasons": [text]}]}
    meta |= {"latency_ms_by_step": {text: 1.0}, "query": query, "model": text, "provider": text, "degraded": [text]}
    copied: Body = json.loads(json.dumps(made))
    return copied


def _recorded(settings: Settings) -> None:
    found = documents.find(["hostile", "hostile/newer"])
    one, other = (found[key].chunk_ids[0] for key in ("hostile", "hostile/newer"))
    answer = dict(whole_turn(ALL))
    meta = answer["meta"]
    assert isinstance(meta, dict)
    conflicts = [{"kind": "number", "trusted": one, "other": other}]
    answer["meta"] = {**meta, "beside": {"related": [], "rejected": [], "conflicts": conflicts}}
    content = {"answer": answer, "found": list(PAYLOADS), "history": [], "request": {"question": ALL}}
    now = datetime.now(UTC)
    entries = [Entry(TENANT, "turn-hostile", now, "answered", WORST, "p", "", (), canonical(content))]
    cited = {"hostile": [one]}
    entries += [entry("turn-cited", tenant_id=TENANT, at=now, question=WORST, text=WORST, cited=cited, reason=WORST)]
    audit.append(entries, settings)
    feedback.give("turn-cited", "", "down", "other", ALL)


def _articles(settings: Settings) -> tuple[str, str]:
    misses = [Miss(WORST, text, text, ("hit", str(number)), ("hostile",)) for number, text in enumerate(PAYLOADS)]
    misses += [Miss(WORST, f"Закрыт {WORST}", "closed", ("closed",), ())]
    missed = entry("turn-missed", tenant_id=TENANT, outcome="refused", question=WORST, reason=WORST, misses=misses)
    audit.append([missed], settings)
    gap_ids = [one.gap_id for one in misses]
    text = "\n\n".join(PAYLOADS).replace("\0", "")
    article = articles.add(Draft(ALL[:300], text, tuple(PAYLOADS[:20])), gap_ids[:-1])
    side = {"outcome": "answered", "reason": WORST, "text": ALL, "cited": [WORST], "articles": [WORST]}
    asked = [
        {"kind": "own", "question": ALL, "before": side, "after": side},
        {"kind": "gap", "turn_id": "turn-missed", "gap_id": gap_ids[0], "before": side, "after": side},
    ]
    moment = datetime.now(UTC).isoformat()
    preview = {"version": 1, "state": "done", "begun_at": moment, "at": moment, "total": 2, "questions": asked}
    articles.put_preview(article.article_id, desk.as_json(preview))
    gaps.decide([gap_ids[-1]], "dismissed")[0]
    return gap_ids[0], article.article_id


def _doubts() -> None:
    for text in PAYLOADS:
        rejected.put(Rejected(text, text, doc_id="hostile"))
    found = documents.find(["errors", "hostile"])
    one, other = found["errors"], found["hostile"]
    agreements.put(one.chunk_ids[0], one.doc_id, other.chunk_ids[0], other.doc_id)


def _evaluated() -> None:
    figure = {"value": 0.5, "low": 0.1, "high": 1.0, "n": 4}
    point = {"claimed": 0.5, "answer_precision": 0.5, "answer_recall": 0.5, "false_answer_rate": 0.0}
    sets = [{"name": one, "n": 4, "figures": {one: figure}, "claims": [point]} for one in PAYLOADS]
    targets = [{"set": one, "figure": one, "demand": one, "met": True} for one in PAYLOADS]
    summary = json.loads(json.dumps({"pipeline": WORST, "sets": sets, "targets": targets}))
    evaluations.add(EvaluationRun(f"run {WORST}", datetime.now(UTC), summary))


def _chat() -> str:
    with acting_as(Tenant(TENANT, f"v:{WORST}")):
        chat = begun = store.start(site=WORST, channel=WORST)
        for text in PAYLOADS:
            chat = store.post(chat.chat_id, text).chat
            hint: Body = {"suggestion": {"turn": whole_turn(text), "reply": text, "answers": "m"}}
            store.suggest(chat.chat_id, text, hint)
            body: Body = {"turn": whole_turn(text)}
            store.answer(chat.chat_id, chat.version, text, turn_id="turn-hostile", body=body, failed=False)
            store.note(chat.chat_id, text, name=text[:100])
            with changing(chat.chat_id) as change:
                file: Body = {"file": {"file_id": "f", "name": text, "size": 1, "media_type": "text/html"}}
                change.add("customer", "file", text, body={**file, "email": {"from": text, "attachments": 2}})
            mail_changes.note_undelivered(chat.chat_id, text)
        store.rate(chat.chat_id, 1, ALL)
        store.hand_over(chat.chat_id, HandoffRequest(WORST, question=ALL, draft=ALL))
    for number, text in enumerate(PAYLOADS):
        customer = f"u:{number}{text}"[:255]
        ended = desk.asked(TENANT, customer, f"{PAYLOADS[0]} {text}", site=WORST)
        if number % 3 == 0:
            with acting_as(_AUTHOR):
                store.reply(ended.chat_id, text, seen=1, name=text[:100])
                store.resolve(ended.chat_id)
    return begun.chat_id


def _job() -> JobRow:
    job = finished_job(TENANT)
    job.files = list(PAYLOADS)
    job.report = {
        "added": 1,
        "errors": [{"source": one, "code": one, "line": 3, "params": {"field": one}} for one in PAYLOADS],
        "flagged": [{"doc_id": one, "flags": [one]} for one in PAYLOADS],
    }
    return job
