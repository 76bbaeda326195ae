"""Settings: rules, hours, offers, synonyms, sites, the history of changes."""

from tests.service.desk_cases.case import PageCase

SITE = {"key": "site-of-acme"}
FOREIGN_SITE = {"key": "site-of-globex"}


def site_case(form: dict[str, str] | None = None, *answers: int) -> PageCase:
    """A page of one site."""
    return PageCase("admin", form or {}, own=SITE, foreign=FOREIGN_SITE, answers=answers or (200,))


PAGES: dict[tuple[str, str], PageCase] = {
    ("GET", "/desk/settings"): PageCase("admin"),
    ("POST", "/desk/settings/policy/{group}"): PageCase(
        "admin", {"answer_threshold": "0", "top_k": "5"}, own={"group": "answers"}, answers=(303,)
    ),
    ("GET", "/desk/settings/offers"): PageCase("admin"),
    ("POST", "/desk/settings/offers"): PageCase("admin", answers=(303,)),
    ("GET", "/desk/settings/synonyms"): PageCase("admin"),
    ("POST", "/desk/settings/synonyms"): PageCase("admin", answers=(303,)),
    ("GET", "/desk/settings/hours"): PageCase("admin"),
    # Without a zone: hours that stayed would close the other tests' chats at night.
    ("POST", "/desk/settings/hours"): PageCase("admin", {"zone": ""}, answers=(422,)),
    ("POST", "/desk/settings/hours/remove"): PageCase("admin", answers=(303,)),
    ("GET", "/desk/settings/sites"): PageCase("admin"),
    ("POST", "/desk/settings/sites"): PageCase("admin", {"name": ""}, answers=(422,)),
    ("GET", "/desk/settings/sites/{key}"): site_case(),
    ("POST", "/desk/settings/sites/{key}"): site_case({"name": "Магазин", "locale": "ru"}, 303),
    ("POST", "/desk/settings/sites/{key}/rotate"): site_case({}, 303),
    ("POST", "/desk/settings/sites/{key}/revoke"): site_case({}, 303),
    ("POST", "/desk/settings/sites/{key}/identity"): site_case({}, 200),
    ("POST", "/desk/settings/sites/{key}/remove"): PageCase(
        "admin", own={"key": "spare-site-of-acme"}, foreign=FOREIGN_SITE, answers=(303, 404)
    ),
    ("GET", "/desk/settings/changes"): PageCase("admin"),
    ("POST", "/desk/settings/changes/undo"): PageCase(
        "admin",
        own={"change_id": "change-of-acme"},
        foreign={"change_id": "change-of-globex"},
        answers=(303,),
    ),
}
