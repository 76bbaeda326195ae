"""Verdicts as graded answers."""

import json
from dataclasses import replace

from evaluation.datasets.thumbs import graded_thumbs
from evaluation.metrics.claims import GradedClaim
from settings import Settings
from tenants.accounts.registry import Registry
from tenants.audit import store
from tenants.audit.entry import Entry, canonical
from tenants.core.context import Tenant, acting_as
from tenants.desk import feedback
from tests.audits import entry


def shown(turn_id: str, confidence: float, outcome: str = "answered") -> Entry:
    audit_entry = entry(turn_id, tenant_id="shop", outcome=outcome)
    body = json.loads(audit_entry.body)
    body["answer"]["scores"] = {"confidence": confidence}
    return replace(audit_entry, body=canonical(body))


def test_an_answer_is_right_where_every_thumb_is_up(installation: Settings) -> None:
    Registry().add("shop")
    turns = [shown("t1", 0.9), shown("t2", 0.6), shown("t3", 0.4, "refused"), shown("t4", 0.8), shown("t5", 0.7)]
    store.append(turns, installation)
    with acting_as(Tenant("shop", "anna")):
        feedback.give("t1", "anna", "up")
        feedback.give("t2", "anna", "up")
        feedback.give("t2", "bob", "down", "wrong")
        feedback.give("t3", "anna", "down")
        feedback.give("t5", "anna", "down")
        assert sorted(graded_thumbs(), key=lambda one: one.confidence) == [
            GradedClaim(0.6, False),
            GradedClaim(0.7, False),
            GradedClaim(0.9, True),
        ]
