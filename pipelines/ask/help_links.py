"""Addresses of the help centre's pages: `/help/{site}/{article}#{section}`."""

import logging
import re
from dataclasses import dataclass
from hashlib import sha256
from urllib.parse import quote

from components.judge.terms import read_query
from components.language.words import stems
from components.turn import Article, Passage
from pipelines.ask.contract import SectionPart
from pipelines.ask.outlines import anchor, sections_of
from settings import get_settings
from tenants.chats import sites
from tenants.core import context
from tenants.core.errors import NoTenant, OporaError, trail
from tenants.knowledge import published
from tenants.knowledge.tools import ORIGIN

log = logging.getLogger("opora.ask")

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
_HEADING = re.compile(r"(?:#{1,6}\s+)?(\w[^\n|]{0,120}[^\n|.:;,])")
_DIGEST = 20


_MAX_SECTIONS = 6
_MAX_CHUNKS = 100
"""Chunks of an article whose sections are listed: reading a longer one takes too long beside an answer."""


@dataclass(frozen=True, slots=True)
class HelpLinks:
    """Links to the help centre of one site.

    :param base: its address without a slash at the end; a path if the service's public address is unknown.
    """

    base: str

    def to(self, passage: Passage, quoted: str = "") -> str | None:
        """Return the page of a passage at its section; None for a tool and a document that is not published.

        :param quoted: a sentence of the passage, which tells its section where the passage holds several small ones.
        """
        if passage.doc_id.startswith(ORIGIN) or not published.is_published(passage.doc_id, passage.status):
            return None
        place = anchor(passage.heading or _heading_above(quoted, passage.text))
        return f"{self.base}/{article_key(passage.doc_id)}" + (f"#{quote(place)}" if place else "")

    def sections(self, article: Article, query: str) -> tuple[SectionPart, ...]:
        """Return the other sections of an offered article, in their order; none if it is not published.

        Of a long article those whose headings share most with the query.
        """
        try:
            record = published.get(article.passage.doc_id)
            if record is None or len(record.chunk_ids) > _MAX_CHUNKS:
                return ()
            sections = sections_of(record)
        except OporaError as error:
            log.warning("no sections of an offered article: %s", trail(error))
            return ()
        shown = anchor(article.passage.heading)
        others = [one for one in sections if one.section.title and one.anchor != shown]
        weights = read_query(query).weights

        def shared(at: int) -> float:
            return sum(weights.get(stem, 0.0) for stem in set(stems(others[at].section.title)))

        nearest = sorted(sorted(range(len(others)), key=shared, reverse=True)[:_MAX_SECTIONS])
        page = f"{self.base}/{article_key(record.doc_id)}"
        return tuple(
            SectionPart(heading=others[at].section.title, url=f"{page}#{quote(others[at].anchor)}") for at in nearest
        )


def of_caller() -> HelpLinks | None:
    """Links for the caller in context: to the site of a chat; else, if the service's public address is set, to the
    tenant's first site. None without such a site."""
    public = get_settings().public_url.rstrip("/")
    try:
        key = context.current().site
        if not key and not public:
            return None
        own = sites.own()
    except NoTenant:
        return None
    except OporaError as error:
        # An answer without links is better than none.
        log.warning("no links to the help centre: %s", trail(error))
        return None
    site = next((one for one in own if one.has_help_centre and key in ("", one.key)), None)
    return HelpLinks(f"{public}{path_of(site.key)}") if site else None


def _heading_above(quoted: str, text: str) -> str:
    """Return the last heading-like line above a sentence: merged sections have their headings in the text.

    A wrong guess is harmless: browsers then show the page from its top.
    """
    words, heading = quoted.removesuffix("…").strip(), ""
    for paragraph in text.split("\n\n"):
        if words and words in " ".join(paragraph.split()):
            return heading
        if found := _HEADING.fullmatch(paragraph):
            heading = found[1]
    return ""


def path_of(site: str) -> str:
    return f"/help/{site}"


def article_key(doc_id: str) -> str:
    """Return a document's key in a path: its id, or a digest of an id with unsafe characters."""
    if _PLAIN.fullmatch(doc_id):
        return doc_id
    return f"~{sha256(doc_id.encode('utf-8', 'surrogatepass')).hexdigest()[:_DIGEST]}"
