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
    ("POST", "/desk/evaluation/start"): PageCase("ingest", answers=(303, 422, 503)),
    ("POST", "/desk/evaluation/seen"): PageCase("ingest", answers=(303,)),
    ("POST", "/desk/evaluation/hour"): PageCase("admin", {"hour": "4"}, answers=(303,)),
    ("GET", "/desk/evaluation/questions"): PageCase("ingest"),
    ("POST", "/desk/evaluation/questions"): PageCase(
        "ingest", {"question": "Как слить воду?", "facts": "фильтр"}, answers=(303,)
    ),
    ("POST", "/desk/evaluation/questions/file"): PageCase(
        "ingest", files={"file": ("q.csv", "вопрос,отказ\nКто президент?,да".encode())}
    ),
    ("POST", "/desk/evaluation/questions/remove"): PageCase(
        "ingest", own={"question": "question-of-acme"}, foreign={"question": "question-of-globex"}, answers=(303, 404)
    ),
    ("GET", "/desk/evaluation/measured"): PageCase("ingest"),
    ("GET", "/desk/playground"): PageCase("ingest"),
    ("POST", "/desk/playground"): PageCase("ingest", {"question": "Как слить воду?", "both": "1", "b_enough": "0.9"}),
}
