"""Settings: rules, hours, offers, synonyms, sites, the history of changes."""

from tests.service.desk_cases.case import PageCase

SITE = {"key": "site-of-acme"}
FOREIGN_SITE = {"key": "site-of-globex"}
FOREIGN_TOKEN = {"token_id": "token-of-globex"}
FOREIGN_TOOL = {"name": "orders-of-globex"}
WEBHOOK, FOREIGN_WEBHOOK = {"webhook_id": "hook-of-acme"}, {"webhook_id": "hook-of-globex"}


def site_case(form: dict[str, str] | None = None, *answers: int) -> PageCase:
    """A page of one site."""
    return PageCase("admin", form or {}, own=SITE, foreign=FOREIGN_SITE, answers=answers or (200,))


def tool_case(form: dict[str, str] | None = None, *answers: int) -> PageCase:
    """A page of one tool."""
    own, foreign = {"name": "orders-of-acme"}, FOREIGN_TOOL
    return PageCase("admin", form or {}, own=own, foreign=foreign, answers=answers or (200,))


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
    ("GET", "/desk/settings/tools"): PageCase("admin"),
    ("POST", "/desk/settings/tools"): PageCase("admin", {"name": ""}, answers=(422,)),
    ("GET", "/desk/settings/tools/{name}"): tool_case(),
    ("POST", "/desk/settings/tools/{name}"): tool_case({"title": ""}, 422),
    ("POST", "/desk/settings/tools/{name}/secrets"): tool_case({"headers": "authorization: secret of acme"}, 303),
    ("POST", "/desk/settings/tools/{name}/test"): tool_case({"question": "Где накладная?"}),
    ("POST", "/desk/settings/tools/{name}/disable"): tool_case({}, 303),
    ("POST", "/desk/settings/tools/{name}/enable"): tool_case({}, 303),
    ("POST", "/desk/settings/tools/{name}/remove"): PageCase(
        "admin", own={"name": "spare-tool-of-acme"}, foreign=FOREIGN_TOOL, answers=(303, 404)
    ),
    ("GET", "/desk/settings/webhooks"): PageCase("admin"),
    ("POST", "/desk/settings/webhooks"): PageCase("admin", {"url": "ftp://x"}, answers=(422,)),
    ("POST", "/desk/settings/webhooks/test"): PageCase("admin", own=WEBHOOK, foreign=FOREIGN_WEBHOOK, answers=(303,)),
    ("POST", "/desk/settings/webhooks/rotate"): PageCase("admin", own=WEBHOOK, foreign=FOREIGN_WEBHOOK),
    ("POST", "/desk/settings/webhooks/remove"): PageCase(
        "admin", own={"webhook_id": "spare-hook-of-acme"}, foreign=FOREIGN_WEBHOOK, answers=(303, 404)
    ),
    ("POST", "/desk/settings/webhooks/redeliver"): PageCase(
        "admin",
        own={"delivery_id": "delivery-of-acme"},
        foreign={"delivery_id": "delivery-of-globex"},
        answers=(303,),
    ),
    ("GET", "/desk/settings/tokens"): PageCase("admin"),
    ("POST", "/desk/settings/tokens"): PageCase("admin", {"subject": "crm", "days": "7"}, answers=(422,)),
    ("POST", "/desk/settings/tokens/rotate"): PageCase(
        "admin", {"hours": "0"}, own={"token_id": "token-of-acme"}, foreign=FOREIGN_TOKEN, answers=(200, 409)
    ),
    ("POST", "/desk/settings/tokens/revoke"): PageCase(
        "admin", own={"token_id": "spare-token-of-acme"}, foreign=FOREIGN_TOKEN, answers=(303,)
    ),
    ("GET", "/desk/settings/models"): PageCase("admin"),
    ("POST", "/desk/settings/models/test"): PageCase("admin", {"profile": "embedded"}),
    ("GET", "/desk/settings/sign-in"): PageCase("admin"),
    ("POST", "/desk/settings/sign-in"): PageCase("admin", {"issuer": "http://id.shop.example"}, answers=(422,)),
    ("POST", "/desk/settings/sign-in/remove"): PageCase("admin", answers=(303, 404)),
    ("GET", "/desk/settings/changes"): PageCase("admin"),
    ("POST", "/desk/settings/changes/undo"): PageCase(
        "admin",
        own={"change_id": "change-of-acme"},
        foreign={"change_id": "change-of-globex"},
        answers=(303,),
    ),
}
