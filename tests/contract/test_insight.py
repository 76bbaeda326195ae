"""Statistics of chats match counts by hand on every database."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete

from settings import Settings
from tenants.accounts import policy
from tenants.accounts.hours import Hours
from tenants.accounts.registry import Registry
from tenants.audit import store as audit
from tenants.audit.entry import Entry, canonical
from tenants.chats import change, store
from tenants.chats.records import HandoffRequest
from tenants.chats.tables import ChatRow
from tenants.chats.transitions import STATES
from tenants.core import fairness
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import Invalid
from tenants.insight import chats, period, turns
from tenants.insight.chats import PARTS, RESULTS, Tally, Waiting
from tenants.insight.period import Period
from tenants.knowledge.gaps import Miss
from tenants.storage import database, searching

ANNA, CUSTOMER = Tenant("acme", "anna"), Tenant("acme", "v:1")
MOSCOW = "Europe/Moscow"
NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
NOVEMBER = Period(date(2026, 11, 1), date(2026, 11, 20), MOSCOW)

# What happens, each after so much time from the first message: q the customer writes, a: the assistant answers with an
# outcome, h the customer asks for a person, r an operator replies, x one resolves, o one reopens, b one hands back,
# s one puts it off, k the customer rates.
FORTY = """
no  first message  site   channel loc  what happened                                            result
01  11-02 10:00    shop   widget  ru   5s a:answered                                            autonomous
02  11-02 10:30    shop   widget  ru   5s a:answered, 2m q, 125s a:answered, 3m k5              autonomous
03  11-02 23:30    shop   widget  ru   5s a:answered                                            autonomous
04  11-03 00:30    shop   widget  ru   5s a:partially_answered                                  autonomous
05  11-03 09:00    shop   widget  ru   5s a:answered, 1m q, 65s a:irrelevant                    autonomous
06  11-03 09:30    shop   widget  ru   5s a:low_confidence, 1m k4                               autonomous
07  11-03 12:00    shop   widget  en   5s a:answered, 3h x                                      autonomous
08  11-04 12:00    help   page    en   5s a:answered                                            autonomous
09  11-04 13:00    help   page    en   5s a:answered, 1m k3                                     autonomous
10  11-04 14:00    help   page    ru   5s a:answered, 9d q, 778000s a:answered                  autonomous
11  11-17 10:00    help   page    ru   5s a:answered                                            autonomous
12  11-18 10:00           api     ru   5s a:answered                                            autonomous
13  11-02 11:00    shop   widget  ru   5s a:refused, 1m h, 11m r, 31m x                         assisted
14  11-02 12:00    shop   widget  ru   30s a:refused, 1m h, 6m r, 60m x, 61m k5                 assisted
15  11-04 10:00    shop   widget  ru   5s a:answered, 5m r, 10m x                               assisted
16  11-04 11:00    shop   widget  en   5s a:answered, 1m h, 3m r, 4m b                          assisted
17  11-05 10:00    shop   widget  en   30s a:cannot_answer, 1m h, 61m r, 2h x, 3h k2            assisted
18  11-05 11:00    help   page    ru   5s a:refused, 1m h, 2m r, 20m x                          assisted
19  11-05 12:00    help   page    ru   5s a:clarify, 1m h, 21m r, 40m x                         assisted
20  11-16 10:00    help   page    ru   5s a:refused, 1m h, 31m r, 90m x                         assisted
21  11-16 11:00           api     ru   1m h, 2m r, 50m x                                        assisted
22  11-06 10:00    shop   widget  ru   5s a:answered, 26h q, 93605s a:answered                  reopened
23  11-06 11:00    shop   widget  ru   30s a:refused, 1m h, 5m r, 1h x, 2d q, 172805s a:answered reopened
24  11-06 12:00    shop   widget  ru   5s a:refused, 1m h, 3m r, 1h x, 3d o, 75h x              reopened
25  11-06 13:00    shop   widget  en   5s a:answered, 167h q, 601205s a:answered                reopened
26  11-18 12:00    shop   widget  ru   5s a:answered, 46h q, 165605s a:answered                 reopened
27  11-06 14:00    help   page    ru   5s a:refused, 1m h, 4m r, 30m x, 90m q, 5405s a:refused  reopened
28  11-07 10:00    shop   widget  ru   5s a:refused                                             unresolved
29  11-07 11:00    shop   widget  ru   5s a:clarify                                             unresolved
30  11-07 12:00    shop   widget  ru   5s a:low_confidence                                      unresolved
31  11-07 13:00    shop   widget  ru   5s a:answered, 1m k1                                     unresolved
32  11-07 14:00    shop   widget  ru   30s a:refused, 1m h, 5h x                                unresolved
33  11-08 10:00    help   page    en   30s a:failed                                             unresolved
34  11-08 11:00    help   page    ru   5s a:nonsense                                            unresolved
35  11-08 12:00    help   page    ru                                                            unresolved
36  11-15 10:00    help   page    ru   5s a:answered, 1m q, 65s a:refused                       unresolved
37  11-20 13:00    shop   widget  ru   5s a:answered                                            open
38  11-17 12:00    shop   widget  ru   5s a:high_stakes, 1m h                                   open
39  11-17 13:00    shop   widget  ru   5s a:refused, 1m h, 9m r                                 open
40  11-17 14:00    shop   widget  ru   5s a:refused, 1m h, 2m r, 3m s                           open
"""
# Counted by hand, down the columns:
RESULT_COUNTS = {"autonomous": 12, "assisted": 9, "reopened": 6, "unresolved": 9, "open": 4}
# Ended after 11-13 15:00 in Moscow and not reopened: 11, 12, 20, 21, 36; number 10, at 14:06 of that day, just not.
PROVISIONAL = 5
BY_DAY = {
    "2026-11-02": Tally(autonomous=3, assisted=2),
    "2026-11-03": Tally(autonomous=4),
    "2026-11-04": Tally(autonomous=3, assisted=2),
    "2026-11-05": Tally(assisted=3),
    "2026-11-06": Tally(reopened=5),
    "2026-11-07": Tally(unresolved=5),
    "2026-11-08": Tally(unresolved=3),
    "2026-11-15": Tally(unresolved=1, provisional=1),
    "2026-11-16": Tally(assisted=2, provisional=2),
    "2026-11-17": Tally(autonomous=1, open=3, provisional=1),
    "2026-11-18": Tally(autonomous=1, reopened=1, provisional=1),
    "2026-11-20": Tally(open=1),
}
BY_SITE = {"shop": 26, "help": 12, "": 2}
BY_CHANNEL = {"widget": 26, "page": 12, "api": 2}
BY_LOCALE = {"ru": 33, "en": 7}
BY_OUTCOME = {
    "answered": 18,  # 01-03 05 07-12 15 16 22 23 25 26 31 37
    "partially_answered": 1,  # 04
    "low_confidence": 2,  # 06 30
    "refused": 11,  # 13 14 18 20 24 27 28 32 36 39 40
    "cannot_answer": 1,  # 17
    "clarify": 2,  # 19 29
    "failed": 1,  # 33
    "nonsense": 1,  # 34
    "high_stakes": 1,  # 38
    "": 2,  # 21 35
}
HANDED_OVER = {"user_request": 15, "": 25}  # 13 14 16-21 23 24 27 32 38-40
RATINGS = {1: 1, 2: 1, 3: 1, 4: 1, 5: 2}  # 31, 17, 09, 06, 02 and 14
WAITS = {
    # 38 were answered, all but 21 and 35: 33 after 5 s; 14, 17, 23, 32 and 33 after 30 s.
    "answer": Waiting(38, 5, 30),
    # From h to r, in minutes: 1 1 1 2 2 3 [4] 5 8 10 20 [30] 60. Number 15 was not asked for.
    "reply": Waiting(13, 240, 1_800),
    # To x, in minutes: 10 20 31 40 50 [60] 90 120 180 [300] 4500. Of 23 and 27 the resolution did not last.
    "resolution": Waiting(11, 3_600, 18_000),
}
_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


class Clock(datetime):
    """A clock that returns a fixed time."""

    moment = NOW

    @classmethod
    def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
        return cls.moment


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> type[Clock]:
    for module in (change, store):
        monkeypatch.setattr(module, "datetime", Clock)
    return Clock


@pytest.fixture
def acme(records: Settings) -> Iterator[None]:
    for tenant_id in ("acme", "globex"):
        Registry().add(tenant_id)
    with acting_as(ANNA):
        policy.change(hours=Hours(zone=MOSCOW, week={}))
        yield


def lived(clock: type[Clock], line: str) -> None:
    """Lead a chat through the events of its line."""
    number, first, site, channel, locale, happened = _columns(line)
    begun = datetime.strptime(f"2026-{first}", "%Y-%m-%d %H:%M").replace(tzinfo=ZoneInfo(MOSCOW)).astimezone(UTC)
    customer = Tenant("acme", f"v:{number}")
    clock.moment = begun
    with acting_as(customer):
        chat_id = store.start(site=site, channel=channel, locale=locale).chat_id
        store.post(chat_id, "?")
    for step in filter(None, happened.split(", ")):
        after, verb = step.split(" ")
        clock.moment = begun + timedelta(seconds=int(after[:-1]) * _UNITS[after[-1]])
        with acting_as(ANNA if verb in "rxobs" else customer):
            _do(chat_id, verb)


def _columns(line: str) -> list[str]:
    edges = (0, 4, 19, 26, 34, 39, line.rindex(" "))
    return [line[begins:ends].strip() for begins, ends in pairwise(edges)]


def _do(chat_id: str, verb: str) -> None:
    match verb[0]:
        case "q":
            store.post(chat_id, "?")
        case "a":
            turn = {"outcome": verb.removeprefix("a:"), "refusal_reason": None}
            version = store.get(chat_id).version
            assert store.answer(chat_id, version, "!", turn_id="t", body={"turn": turn}, failed=False)
        case "h":
            assert store.hand_over(chat_id, HandoffRequest("user_request"))
        case "r":
            store.reply(chat_id, "!", seen=1_000, name="Анна")
        case "x":
            store.resolve(chat_id)
        case "o":
            store.reopen(chat_id, name="Анна")
        case "b":
            store.hand_back(chat_id)
        case "s":
            store.snooze(chat_id, NOW + timedelta(days=1))
        case "k":
            store.rate(chat_id, int(verb[1:]))


def test_forty_chats_are_counted_as_by_hand(acme: None, clock: type[Clock]) -> None:
    lines = FORTY.strip().splitlines()[1:]
    for line in lines:
        lived(clock, line)
    figures = chats.figures(NOVEMBER, NOW)
    assert {result: figures.tally.of(result) for result in RESULTS} == RESULT_COUNTS
    assert (figures.tally.total, figures.tally.ended, figures.tally.provisional) == (40, 36, PROVISIONAL)
    # Of 36 that have ended, 12, 9, 6 and 9.
    assert [figures.tally.rate(result) for result in RESULTS[:4]] == [12 / 36, 9 / 36, 6 / 36, 9 / 36]
    assert {day: tally for day, tally in figures.by_day.items() if tally.total} == BY_DAY
    assert list(figures.by_day) == [day.isoformat() for day in NOVEMBER.days()]
    counted = {part: {key: tally.total for key, tally in figures.by_part[part].items()} for part in PARTS}
    assert counted["site"] == BY_SITE
    assert counted["channel"] == BY_CHANNEL
    assert counted["locale"] == BY_LOCALE
    assert counted["outcome"] == BY_OUTCOME
    assert counted["handoff_reason"] == HANDED_OVER
    assert figures.ratings == RATINGS
    assert (figures.rated, figures.csat) == (6, 3 / 6)
    assert {name: _rounded(wait) for name, wait in figures.waits.items()} == WAITS
    exported = [line.result for line in chats.lines(NOVEMBER, NOW, at_once=7)]
    assert Counter(exported) == RESULT_COUNTS
    by_number = {line.split()[0]: line.split()[-1] for line in lines}
    assert Counter(by_number.values()) == RESULT_COUNTS


def _rounded(wait: Waiting) -> Waiting:
    return Waiting(wait.count, wait.median and round(wait.median, 2), wait.p90 and round(wait.p90, 2))


def test_an_empty_period_has_no_rates(acme: None) -> None:
    figures = chats.figures(NOVEMBER, NOW)
    assert figures.tally == Tally()
    assert figures.tally.rate("autonomous") is None
    assert (figures.csat, figures.rated) == (None, 0)
    assert figures.waits["answer"] == Waiting()
    assert list(chats.lines(NOVEMBER, NOW)) == []


def test_empty_chats_and_other_tenants_chats_are_not_counted(acme: None, clock: type[Clock]) -> None:
    clock.moment = NOW
    with acting_as(CUSTOMER):
        store.start()
    with acting_as(Tenant("globex", "v:1")):
        store.post(store.start().chat_id, "?")
    assert chats.figures(NOVEMBER, NOW).tally.total == 0


_MOMENT = st.datetimes(datetime(2026, 10, 20), datetime(2026, 11, 20)).map(lambda one: one.replace(tzinfo=UTC))
_MAYBE = st.none() | _MOMENT
_CHAT = st.fixed_dictionaries(
    {
        "site": st.sampled_from(["shop", "help"]),
        "channel": st.sampled_from(["widget", "api"]),
        "locale": st.sampled_from(["ru", "en"]),
        "state": st.sampled_from(STATES),
        "ticket_id": st.sampled_from([None, "T"]),
        "reason": st.sampled_from(["", "user_request"]),
        "outcome": st.sampled_from(["", "answered", "refused"]),
        "outcome_reason": st.sampled_from(["", "unverified_answer"]),
        "csat": st.none() | st.integers(1, 5),
        "asked_at": _MOMENT,
        "answered_at": _MAYBE,
        "requested_at": _MAYBE,
        "replied_at": _MAYBE,
        "returned_at": _MAYBE,
        "resolved_at": _MOMENT,
        "updated_at": _MOMENT,
    }
)
_ALIKE = {
    "tenant_id": "acme", "subject": "v", "version": 0, "last_seq": 0, "failures": 0, "reopened": 0, "csat_comment": "",
    "customer_seen": 0, "operator_seen": 0, "created_at": NOW,
}  # fmt: skip


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Australia/Lord_Howe", "Asia/Kolkata"])
def test_the_parts_sum_to_the_whole_and_days_are_the_tenants_own(acme: None, zone: str) -> None:
    """Through a change of clocks in Berlin, on 25 October, and through the places where half an hour matters."""
    span = Period(date(2026, 10, 22), date(2026, 11, 15), zone)
    begins, ends = span.bounds

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.lists(_CHAT, max_size=30))
    def check(rows: list[dict[str, object]]) -> None:
        with database.writing() as session:
            session.execute(delete(ChatRow))
            if rows:
                session.insert_rows(ChatRow, [{**_ALIKE, **row, "chat_id": f"c{at}"} for at, row in enumerate(rows)])
        figures = chats.figures(span, NOW)
        asked = [row["asked_at"] for row in rows if isinstance(row["asked_at"], datetime)]
        held = [moment for moment in asked if begins <= moment < ends]
        assert figures.tally.total == len(held)
        days = Counter(moment.astimezone(ZoneInfo(zone)).date().isoformat() for moment in held)
        assert {day: tally.total for day, tally in figures.by_day.items() if tally.total} == days
        assert sum(figures.by_day.values(), Tally()) == figures.tally
        for part in PARTS:
            assert sum(figures.by_part[part].values(), Tally()) == figures.tally
        exported = list(chats.lines(span, NOW, at_once=4))
        assert Counter(line.result for line in exported) == +Counter({one: figures.tally.of(one) for one in RESULTS})
        assert sum(line.provisional for line in exported) == figures.tally.provisional
        assert figures.tally.provisional <= figures.tally.ended

    check()


def turn(number: int, outcome: str, reason: str | None, *cited: str, asked: str = "") -> Entry:
    """Return a recorded turn that cites documents, or that is a gap."""
    citations = [{"doc_id": doc_id, "chunk_id": f"{doc_id}#1"} for doc_id in cited]
    body = {"answer": {"answer": {"text": "!"}, "citations": citations}, "found": [], "request": {"question": "?"}}
    misses = (Miss("no_relevant_context", asked, asked, (asked,), ()),) if asked else ()
    at = NOW - timedelta(hours=number)
    return Entry("acme", f"t{number}", at, outcome, reason, "", "", misses, canonical(body))


def test_turns_are_counted_by_outcome_citation_and_gap(acme: None, records: Settings) -> None:
    entries = [
        turn(1, "answered", None, "returns.md", "delivery.md"),
        turn(2, "answered", None, "returns.md"),
        turn(3, "refused", "no_relevant_context", asked="гарантия"),
        turn(4, "refused", "no_relevant_context", asked="гарантия"),
        turn(5, "refused", "unverified_answer", asked="кредит"),
        turn(24 * 30, "answered", None, "delivery.md"),
    ]
    audit.append(entries, records)
    figures = turns.figures(NOVEMBER)
    assert figures.total == 5
    assert list(figures.by_outcome.items()) == [("refused", 3), ("answered", 2)]
    assert list(figures.by_reason.items()) == [("no_relevant_context", 2), ("unverified_answer", 1)]
    assert [(one.doc_id, one.turns) for one in figures.topics] == [("returns.md", 2), ("delivery.md", 1)]
    assert [(one.question, one.status, one.turns) for one in figures.missed] == [
        ("гарантия", "open", 2),
        ("кредит", "open", 1),
    ]
    with acting_as(Tenant("globex", "anna")):
        assert turns.figures(NOVEMBER).total == 0


@pytest.mark.parametrize("figures", [turns.figures, lambda period: chats.figures(period, NOW)])
def test_figures_let_questions_go_first(
    acme: None, monkeypatch: pytest.MonkeyPatch, figures: Callable[[Period], object]
) -> None:
    yields: list[bool] = []
    monkeypatch.setattr(fairness, "yield_to_questions", lambda: yields.append(True))
    figures(NOVEMBER)
    assert len(yields) >= 3


@pytest.mark.parametrize("records", ["sqlite"], indirect=True)
def test_figures_take_steps_proportional_to_the_gaps(
    acme: None, records: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    yields: list[bool] = []
    monkeypatch.setattr(searching, "_INSTRUCTIONS", 10)
    monkeypatch.setattr(fairness, "yield_to_questions", lambda: yields.append(True))

    def steps() -> int:
        yields.clear()
        turns.figures(NOVEMBER)
        return len(yields)

    def add(numbers: range) -> None:
        asked = [(number, turn(1, "refused", "no_relevant_context", asked=f"вопрос {number}")) for number in numbers]
        audit.append([replace(entry, turn_id=f"gap{number}") for number, entry in asked], records)

    add(range(50))
    few = steps()
    add(range(50, 200))
    assert 0 < few < steps() < 6 * few


def test_a_period_is_in_the_zone_of_the_opening_hours(acme: None) -> None:
    late = datetime(2026, 11, 20, 22, 0, tzinfo=UTC)
    assert period.chosen(None, None, 7, late) == Period(date(2026, 11, 15), date(2026, 11, 21), MOSCOW)
    policy.change(hours=None)
    assert period.chosen(None, None, 7, late) == Period(date(2026, 11, 14), date(2026, 11, 20), "UTC")
    assert period.chosen(date(2026, 1, 1), date(2026, 1, 31), 7, late).last == date(2026, 1, 31)
    assert period.chosen(date(2026, 1, 1), None, 7, late).last == date(2026, 1, 7)


def test_a_period_that_is_none_is_refused(acme: None, subtests: pytest.Subtests) -> None:
    for first, last in (
        (date(2026, 2, 1), date(2026, 1, 1)),
        (date(2025, 1, 1), date(2026, 1, 2)),
        (date(1, 1, 1), date(1, 1, 2)),
        (None, date.min),
        (date.max, None),
    ):
        with subtests.test(first=first), pytest.raises(Invalid, match="period_invalid"):
            period.chosen(first, last, 28, NOW)
