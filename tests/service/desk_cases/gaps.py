"""Questions without an answer, and the articles that are written for them."""

from tests.service.desk_cases.case import PageCase
from tests.service.stored import recorded

_GAP = {"gap_id": recorded("acme").misses[0].gap_id}
_FOREIGN_GAP = {"gap_id": recorded("globex").misses[0].gap_id}
_CHOSEN = {"gap": _GAP["gap_id"]}
_FOREIGN_CHOSEN = {"gap": _FOREIGN_GAP["gap_id"]}
_PAIR = {"one": "00000000-0000-0000-0000-000000000001", "other": "x"}
_TEXT = {"title": "Возврат", "text": "Вернуть можно за 14 дней.", "version": "1"}


def article_case(scope: str = "operate", form: dict[str, str] | None = None, *answers: int) -> PageCase:
    """A page of one article."""
    own, foreign = {"article_id": "article-of-acme"}, {"article_id": "article-of-globex"}
    return PageCase(scope, form or {}, own=own, foreign=foreign, answers=answers or (200,))


PAGES: dict[tuple[str, str], PageCase] = {
    ("GET", "/desk/gaps"): PageCase("operate"),
    ("GET", "/desk/gaps/{gap_id}"): PageCase("operate", own=_GAP, foreign=_FOREIGN_GAP),
    ("POST", "/desk/gaps/decide"): PageCase(
        "operate", {"status": "dismissed"}, own=_CHOSEN, foreign=_FOREIGN_CHOSEN, answers=(303,)
    ),
    ("POST", "/desk/gaps/assign"): PageCase(
        "operate", {"article": "article-of-acme"}, own=_CHOSEN, foreign=_FOREIGN_CHOSEN, answers=(303,)
    ),
    ("GET", "/desk/articles"): PageCase("operate"),
    ("GET", "/desk/articles/new"): PageCase("operate"),
    ("POST", "/desk/articles/new"): PageCase("operate", _TEXT, own=_CHOSEN, foreign=_FOREIGN_CHOSEN, answers=(303,)),
    ("GET", "/desk/articles/{article_id}"): article_case(),
    ("POST", "/desk/articles/{article_id}"): article_case("operate", _TEXT, 303, 409),
    ("GET", "/desk/articles/{article_id}/preview"): article_case(),
    ("POST", "/desk/articles/{article_id}/preview"): article_case("operate", {}, 303, 503),
    ("POST", "/desk/articles/{article_id}/publish"): article_case("ingest", {"version": "1000"}, 409),
    ("POST", "/desk/articles/{article_id}/withdraw"): article_case("ingest", {}, 303),
    ("POST", "/desk/articles/{article_id}/remove"): PageCase(
        "operate",
        own={"article_id": "spare-of-acme"},
        foreign={"article_id": "spare-of-globex"},
        answers=(303, 404),
    ),
    ("GET", "/desk/stale"): PageCase("ingest"),
    ("GET", "/desk/contradictions"): PageCase("ingest"),
    ("POST", "/desk/contradictions/settle"): PageCase("ingest", {**_PAIR, "decision": "agree"}, answers=(404,)),
    ("POST", "/desk/contradictions/unsettle"): PageCase("ingest", _PAIR, answers=(404,)),
    ("GET", "/desk/rejected"): PageCase("ingest"),
    ("POST", "/desk/rejected/add"): PageCase("ingest", {"text": "Открыть дверцу силой"}, answers=(303,)),
    ("POST", "/desk/rejected/remove"): PageCase("ingest", {"rejected_id": "nothing"}, answers=(404,)),
}
