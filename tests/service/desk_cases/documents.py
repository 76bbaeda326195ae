"""Cases for the pages of documents: list, document and actions."""

from tests.service.desk_cases.case import PageCase

SPARE = "desk/door.md"
FOREIGN = "globex/door.md"


def document_case(form: dict[str, str] | None = None, *answers: int) -> PageCase:
    """A page of one document."""
    return PageCase("ingest", form or {}, own={"id": SPARE}, foreign={"id": FOREIGN}, answers=answers or (200,))


JOB = {"job_id": "0-of-acme"}
FOREIGN_JOB = {"job_id": "0-of-globex"}
PAGES: dict[tuple[str, str], PageCase] = {
    ("GET", "/desk/documents"): PageCase("ingest"),
    ("GET", "/desk/documents/add"): PageCase("ingest"),
    ("POST", "/desk/documents/upload"): PageCase("ingest", answers=(303,), files={"files": ("люк.md", b"# Door")}),
    ("POST", "/desk/documents/site"): PageCase("ingest", {"url": "http://127.0.0.1/help"}, answers=(303,)),
    ("GET", "/desk/jobs"): PageCase("ingest"),
    ("GET", "/desk/jobs/{job_id}"): PageCase("ingest", own=JOB, foreign=FOREIGN_JOB),
    ("POST", "/desk/jobs/{job_id}/cancel"): PageCase("ingest", own=JOB, foreign=FOREIGN_JOB, answers=(303,)),
    ("GET", "/desk/documents/one"): document_case(),
    ("POST", "/desk/documents/set"): document_case(
        {"title": "Дверца", "status": "active", "trust": "accepted", "priority": "3", "tags": "дверца, люк"}, 303
    ),
    ("POST", "/desk/documents/restore"): document_case({"version": "1"}, 303),
    ("POST", "/desk/documents/remove"): document_case({}, 422),
    ("POST", "/desk/documents/tie"): document_case({"choice": "related_to:out", "other": "returns.md"}, 303),
    ("POST", "/desk/documents/untie"): document_case(
        {"from_doc": SPARE, "kind": "supersedes", "to_doc": "errors.md"}, 404
    ),
}
