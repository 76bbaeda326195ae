"""Signing in, accounts, people, the first run."""

from pipelines.pages import SIGNED_IN
from tests.service.desk_cases.case import PageCase

PASSWORD = "снег идёт над рекой"
PAGES: dict[tuple[str, str], PageCase] = {
    ("GET", "/desk/sign-in"): PageCase(None),
    ("POST", "/desk/sign-in"): PageCase(None, {"login": "nobody", "password": "x"}, answers=(401,)),
    ("GET", "/desk/sso"): PageCase(None, answers=(404,)),
    ("GET", "/desk/sso/{tenant_id}"): PageCase(None, own={"tenant_id": "acme"}, answers=(404, 503)),
    ("GET", "/desk/sso-callback"): PageCase(None, answers=(403,)),
    ("GET", "/desk/account"): PageCase(SIGNED_IN),
    ("POST", "/desk/account/password"): PageCase(SIGNED_IN, {"password": "x", "new_password": "y"}, answers=(422,)),
    ("POST", "/desk/account/sessions/end"): PageCase(SIGNED_IN, {"session_id": "0000000000000000"}, answers=(404,)),
    ("POST", "/desk/account/sessions/end-all"): PageCase(SIGNED_IN, answers=(303,)),
    ("POST", "/desk/sign-out"): PageCase(SIGNED_IN, answers=(303,)),
    ("GET", "/desk/people"): PageCase("admin"),
    ("POST", "/desk/people/add"): PageCase(
        "admin", {"login": "zoya", "password": PASSWORD, "role": "editor"}, answers=(303, 422)
    ),
    ("POST", "/desk/people/password"): PageCase(
        "admin", {"password": PASSWORD}, own={"login": "olga.acme"}, foreign={"login": "olga.globex"}, answers=(303,)
    ),
    ("POST", "/desk/people/change"): PageCase(
        "admin",
        {"role": "operator", "name": "Ольга"},
        own={"login": "olga.acme"},
        foreign={"login": "olga.globex"},
        answers=(303,),
    ),
    ("POST", "/desk/people/sign-out"): PageCase(
        "admin", own={"login": "olga.acme"}, foreign={"login": "olga.globex"}, answers=(303,)
    ),
    ("POST", "/desk/people/remove"): PageCase(
        "admin", own={"login": "spare.acme"}, foreign={"login": "olga.globex"}, answers=(303, 404)
    ),
    ("GET", "/desk/first-run/{secret}"): PageCase(None, own={"secret": "used"}, answers=(404,)),
    ("POST", "/desk/first-run/{secret}"): PageCase(None, own={"secret": "used"}, answers=(404,)),
    ("GET", "/desk/welcome"): PageCase("admin"),
    ("POST", "/desk/welcome/ask"): PageCase("admin", {"question": "Что значит код E20?"}),
    ("POST", "/desk/welcome/site"): PageCase("admin", {"key": "no-such-site", "origin": "x"}, answers=(404,)),
}
