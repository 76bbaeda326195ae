"""Figures, records, evaluation, playground."""

from tests.service.desk_cases.case import PageCase

PAGES: dict[tuple[str, str], PageCase] = {
    ("GET", "/desk/insight"): PageCase("operate"),
    ("GET", "/desk/audit"): PageCase("operate"),
    ("POST", "/desk/audit/verify"): PageCase("admin"),
}
