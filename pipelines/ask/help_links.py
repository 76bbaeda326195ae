"""Addresses of the help centre's pages: `/help/{site}/{article}#{section}`."""

import logging
import re
from dataclasses import dataclass
from hashlib import sha256
from urllib.parse import quote

from components.turn import Passage
from settings import get_settings
from tenants.chats import sites
from tenants.core import context
from tenants.core.errors import NoTenant, OporaError, trail
from tenants.knowledge import published

log = logging.getLogger("opora.ask")

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
_WORDS = re.compile(r"\w+")
_HEADING = re.compile(r"(?:#{1,6}\s+)?(\w[^\n|]{0,120}[^\n|.:;,])")
_MAX_ANCHOR = 120
_DIGEST = 20


@dataclass(frozen=True, slots=True)
class HelpLinks:
    """Links to the help centre of one site.

    :param base: its address without a slash at the end; a path if the service's public address is unknown.
    """

    base: str

    def to(self, passage: Passage, quoted: str = "") -> str | None:
        """Return the page of a passage at its section; None for a document that is not published.

        :param quoted: a sentence of the passage, which tells its section where the passage holds several small ones.
        """
        if not published.is_published(passage.doc_id, passage.status):
            return None
        place = anchor(passage.heading or _heading_above(quoted, passage.text))
        return f"{self.base}/{article_key(passage.doc_id)}" + (f"#{quote(place)}" if place else "")


def of_caller() -> HelpLinks | None:
    """Links for the caller in context: to the site of a chat; else, where browsers' address of the service is set, to
    the tenant's first site. None without such a site."""
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
    """Return the path of a site's help centre."""
    return f"/help/{site}"


def article_key(doc_id: str) -> str:
    """Return a document's key in a path: its id, or a digest of an id with unsafe characters."""
    if _PLAIN.fullmatch(doc_id):
        return doc_id
    return f"~{sha256(doc_id.encode('utf-8', 'surrogatepass')).hexdigest()[:_DIGEST]}"


def anchor(heading: str) -> str:
    """Return the id of a section on its article's page, which stays as long as its headings do."""
    return "-".join(_WORDS.findall(heading.casefold()))[:_MAX_ANCHOR]
