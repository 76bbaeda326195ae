"""Gaps, articles and rejected approaches for tests of their pages."""

from collections.abc import Mapping

from settings import Settings
from tenants import rejected
from tenants.audit import store as audit
from tenants.context import Tenant, acting_as
from tenants.desk import articles
from tenants.desk.articles import Draft
from tenants.gaps import Miss
from tenants.rejected import Rejected
from tests.audits import entry
from tests.browser.payloads import PAYLOADS
from tests.service.stored import recorded

HOSTILE = ("gaps", "gap", "new article", "article", "preview", "articles", "rejected")


def paths() -> list[str]:
    """Every page of the section."""
    gap_id = recorded("acme").misses[0].gap_id
    return [
        "/desk/gaps",
        f"/desk/gaps/{gap_id}",
        f"/desk/articles/new?gap={gap_id}",
        "/desk/articles",
        "/desk/articles/article-of-acme",
        "/desk/articles/article-of-acme/preview",
        "/desk/stale",
        "/desk/contradictions",
        "/desk/rejected",
    ]


def hostile_paths(installation: Settings) -> Mapping[str, str]:
    """Pages on which every text that somebody can write is hostile, by the names in `HOSTILE`."""
    misses = [
        Miss("<svg onload=hit()>", text, text, ("hit", str(number)), (text,)) for number, text in enumerate(PAYLOADS)
    ]
    audit.append([entry("turn-of-hostile-gaps", outcome="refused", question=PAYLOADS[0], misses=misses)], installation)
    with acting_as(Tenant("acme", "anna")):
        rejected.put(Rejected(PAYLOADS[0], PAYLOADS[1]))
        article = articles.add(
            Draft(PAYLOADS[0][:300], "\n\n".join(PAYLOADS).replace("\0", ""), tuple(PAYLOADS[:20])),
            [miss.gap_id for miss in misses],
        )
    found = (
        "/desk/gaps?q=hit",
        f"/desk/gaps/{misses[0].gap_id}",
        f"/desk/articles/new?gap={misses[0].gap_id}",
        f"/desk/articles/{article.article_id}",
        f"/desk/articles/{article.article_id}/preview",
        "/desk/articles",
        "/desk/rejected",
    )
    return dict(zip(HOSTILE, found, strict=True))
