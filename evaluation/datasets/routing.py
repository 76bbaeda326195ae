"""Public utterances with intents, used to test routing: to the assistant, a person, or neither.

Each intent belongs to another assistant's taxonomy, so it is mapped to the acceptable intents of Opora. The questions
go to the English demo shop, whose knowledge base answers none of CLINC150's out-of-scope questions.
"""

from pathlib import Path

from components.turn import Intent
from evaluation.cases import Case, QuestionSet
from evaluation.datasets.fixture import demo_corpus
from evaluation.datasets.rows import rows, sequence, string

PERSON: tuple[Intent, ...] = ("high_stakes", "wants_human")
TALK: tuple[Intent, ...] = ("chitchat", "irrelevant")
NO_ALARM: tuple[Intent, ...] = ("answerable", "irrelevant", "out_of_scope", "chitchat", "nonsense")

_CLINC_PERSON = frozenset(
    {"report_fraud", "report_lost_card", "freeze_account", "account_blocked", "cancel_reservation"}
)
_NLUPP_PERSON = {
    "handoff": "asks_for_person",
    "refund": "refund",
    "cancel_close_leave_freeze": "cancellation",
    "lost_stolen": "lost_or_stolen",
}
_NLUPP_TALK = frozenset({"greet", "thank", "acknowledge", "affirm", "deny", "end_call", "repeat", "dont_know"})


def clinc150(data: Path) -> list[QuestionSet]:
    """Read small talk, alarms, everyday requests, and out-of-scope questions."""
    cases = []
    for row in rows(data / "clinc150" / "dev" / "val.jsonl"):
        intent, domain = string(row, "intent"), string(row, "domain")
        category, intents = "everyday", NO_ALARM
        if domain == "small_talk":
            category, intents = "small_talk", TALK
        elif intent in _CLINC_PERSON:
            category, intents = "alarm", PERSON
        elif row.get("out_of_scope"):
            category = "out_of_scope"
        cases.append(
            Case(
                string(row, "id"),
                string(row, "text"),
                "en",
                answerable=False if category == "out_of_scope" else None,
                category=category,
                intents=intents,
            )
        )
    return [QuestionSet("clinc150", demo_corpus("en"), tuple(cases))]


def nlupp(data: Path) -> list[QuestionSet]:
    """Read utterances to a bank and a hotel with several intents each; an intent for a person decides."""
    cases = []
    for row in rows(data / "nlupp" / "dev" / "utterances.jsonl"):
        named = [str(intent) for intent in sequence(row, "intents")]
        alarms = [_NLUPP_PERSON[intent] for intent in named if intent in _NLUPP_PERSON]
        category, intents = "everyday", NO_ALARM
        if alarms:
            category, intents = alarms[0], PERSON
        elif named and set(named) <= _NLUPP_TALK:
            category, intents = "small_talk", NO_ALARM
        cases.append(Case(string(row, "id"), string(row, "text"), "en", category=category, intents=intents))
    return [QuestionSet("nlupp", demo_corpus("en"), tuple(cases))]
