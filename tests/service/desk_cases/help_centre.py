"""The pages of a help centre, which need no session."""

from tests.service.desk_cases.case import PageCase

_ARTICLE = {"site": "site-of-acme", "article": "errors.md"}
PAGES: dict[tuple[str, str], PageCase] = {
    ("GET", "/help/{site}"): PageCase(None, own={"site": "site-of-acme"}),
    ("GET", "/help/{site}/{article}"): PageCase(None, own=_ARTICLE),
    ("POST", "/help/{site}/{article}"): PageCase(None, {"helpful": "yes"}, own=_ARTICLE, answers=(303,)),
}
