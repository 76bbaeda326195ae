"""Figures, records, evaluation, playground."""

from tests.service.desk_cases.case import PageCase

PAGES: dict[tuple[str, str], PageCase] = {
    ("GET", "/desk/insight"): PageCase("operate"),
    ("GET", "/desk/audit"): PageCase("operate"),
    ("POST", "/desk/audit/verify"): PageCase("admin"),
    ("GET", "/desk/reading"): PageCase("ingest"),
    ("POST", "/desk/reading/judge"): PageCase(
        "ingest",
        {"verdict": "right"},
        own={"turn_id": "turn-of-acme"},
        foreign={"turn_id": "turn-of-globex"},
        answers=(303,),
    ),
    ("GET", "/desk/evaluation"): PageCase("ingest"),
    ("GET", "/desk/playground"): PageCase("ingest"),
    ("POST", "/desk/playground"): PageCase("ingest", {"question": "Как слить воду?", "both": "1", "b_enough": "0.9"}),
}
