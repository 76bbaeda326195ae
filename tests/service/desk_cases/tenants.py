"""The tenants of an installation, and the links of their first admins."""

from pipelines.pages import INSTALLATION
from tests.service.desk_cases.case import PageCase

PAGES: dict[tuple[str, str], PageCase] = {
    ("GET", "/desk/tenants"): PageCase(INSTALLATION),
    ("GET", "/desk/tenants/one"): PageCase(INSTALLATION, own={"id": "acme"}),
    ("POST", "/desk/tenants/add"): PageCase(INSTALLATION, {"tenant_id": "acme"}, answers=(422,)),
    # Of a tenant that is not there: the others are at work.
    ("POST", "/desk/tenants/suspend"): PageCase(INSTALLATION, {"id": "nobody"}, answers=(404,)),
    ("POST", "/desk/tenants/resume"): PageCase(INSTALLATION, {"id": "acme"}),
    ("POST", "/desk/tenants/remove"): PageCase(INSTALLATION, {"id": "acme", "typed": "acm"}, answers=(422,)),
    ("POST", "/desk/tenants/invite"): PageCase(INSTALLATION, {"id": "acme"}, answers=(409,)),
    ("GET", "/desk/invitation/{secret}"): PageCase(None, own={"secret": "used"}, answers=(404,)),
    ("POST", "/desk/invitation/{secret}"): PageCase(None, own={"secret": "used"}, answers=(404,)),
}
