"""Links in a text: all that a chat window would turn into something to click on, or would load by itself.

Recognised are Markdown links and pictures, addresses with a scheme or a leading `www.`, and bare names of hosts
(`example.com/offer`) under the top-level domains that chat windows know.
"""

import html
import re
from bisect import bisect_right
from collections.abc import Callable
from functools import lru_cache
from operator import itemgetter
from urllib.parse import urlsplit

_TOP = (
    "com|net|org|info|biz|io|ru|su|рф|by|kz|ua|eu|us|uk|de|cn|me|co|cc|tv|ly|"
    "app|dev|site|online|shop|store|xyz|top|club|link|click"
)
_TARGET = r"\(\s*+<?(?P<target>[^()\s<>]*+(?:\([^()\s<>]*+\)[^()\s<>]*+)*+)(?P<title>[^()\n]*+)\)"
_TITLE = re.compile(r">?\s*(?:\"[^\"]*\"|'[^']*')?\s*")
_LABELLED = re.compile(rf"\]{_TARGET}")
_BRACKET = re.compile(rf"\\.|\n[ \t]*+\n|!?\[|\](?:{_TARGET})?")
_FOLLOWED = re.compile(r"(?:(?:https?|ftp|javascript|vbscript):|data:[^,\s]*,|file:[\\/])[^\s]", re.IGNORECASE)
"""An address as browsers read it: they need no slashes after `https:`."""
_SCRIPT = re.compile("javascript|vbscript|data", re.IGNORECASE)
_NO_SCHEME = re.compile(r"[\\/]{2,}[^\\/\s]")
_PLACE = re.compile(
    r"(?:\]\(|\]:|<|\b(?:href|src)\s*+=)(?=(?P<gap>[\s>\x00-\x20\ufeff]*+[<\"'`]?[\s\x00-\x20\ufeff]*+)"
    r"(?P<scheme>[\w+.&#;:,/\\\t-]++\S?))",
    re.IGNORECASE,
)
"""Each place in a text where a parser of Markdown or HTML can find the target of a link, whatever surrounds it.

Parsers disagree about code, tables, references and HTML, so none of them decides whether an address is harmless here.
"""
_RUN = re.compile(r"(?:(?!\]\(|\]:)[^\s<>\"'`«»]|\t)+")
_SPELT_OUT = re.compile(r"(?:https?|ftp):(?://|\[//\])|//[^\s/]*\.", re.IGNORECASE)
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_STRIPPED = re.compile(r"[\t\n\r]|\A[\x00-\x20]+")
# An address ends where another begins, so that none hides in the tail of a welcome one.
_TAIL = r"(?!https?://|ftp://|(?<=[()\]])//|(?<!/)www\.)[^\s<>\"'`«»{}|]"
_LINK = re.compile(
    r"(?i)(?P<address>(?:(?P<scheme>(?:https?|ftp):|(?<![\w/])[a-z][a-z0-9+.-]{1,20}:)//"
    rf"|(?<![\w/])//(?!(?<=\[//)\])(?=[^\s/]*\.))(?:www\.)?(?:{_TAIL})*|(?<![^\W_])www\.(?:{_TAIL})*)"
    r"|(?:(?<![\w@./\\:-])|(?<=\\[@./:-]))(?:[^\W_](?:[\w-]{0,62}[^\W_])?\.){1,8}"
    rf"(?:{_TOP})(?![\w-]|\.\w)(?:[/:?#](?:{_TAIL}|[{{}}|])*)?"
)
_EMPTY = re.compile("(?:[a-z][a-z0-9+.-]*:)?//|www[.]", re.IGNORECASE)
_HOST_GOES_ON = re.compile(r"[^\s<>/?#:|\[\]^%@]{0,512}\.[\w-]++(?!\()|[^\s</?#]{0,512}(?:@|&#?\w+;)|[^\s</?#]{512}")
"""Text behind an address without a path that changes its host for parsers that end it only at a space."""
_FOOTED = re.compile(
    r"(?<=[\w)»\"'®™*])[ \t]*(?:\[[ \t]*((?:https?|ftp)://[^\s\[\]<>]+)[ \t]*\]"
    r"|\([ \t]*((?:https?|ftp)://[^\s()\[\]<>]+)[ \t]*\))",
    re.IGNORECASE,
)
"""An address in brackets behind the words that it is linked to, as exports of pages and models write links."""
_CODE = re.compile(
    r"(?ms)^[ \t>]*(?P<fence>`{3,}(?=[^`\n]*$)|~{3,}).*?(?:^[ \t>]*(?P=fence)[`~]*[ \t]*$|\Z)"
    r"|(?<![\\`])(?P<ticks>``?)(?!`)[^\n]+?(?<!`)(?P=ticks)(?!`)"
)
"""A block of code or a span of it, of which a chat window makes no links by itself."""
_HTTP = re.compile("https?://", re.IGNORECASE)
_PORT_TO_FILL_IN = re.compile(r":[A-Za-z_]+(?=/|\Z)")
_HEAD = re.compile(r"\A((?:(?:[a-z][a-z0-9+.-]*:)?//)?)([^/?#]*)", re.IGNORECASE)
_HOST = re.compile(r"[\w.-]+")
_CLICKABLE = frozenset({"http:", "https:", "ftp:"})
_ROUNDS = 5
"""Text that a removed link joins can look like another link. Each round is safe by itself."""
_TRAILING = ".,;:!?)]*_~"
_OWN_MACHINE = frozenset({"localhost", "127.0.0.1"})


@lru_cache(maxsize=4_096)
def host_of(address: str) -> str | None:
    """Return the host of an address, in ASCII and lower case, without a leading `www.`.

    None if the scheme is not http or https, the address contains a user name, or programs parse it differently.
    """
    try:
        parts = urlsplit(address if "//" in address else f"//{address}")
        host = parts.hostname or ""
        host = host if host.isascii() else host.encode("idna").decode()
        port = parts.port
    except (ValueError, UnicodeError):
        return None
    misleading = port == 0 or "@" in parts.netloc or "\\" in address or not address.isprintable()
    misleading = misleading or _HOST.fullmatch(host) is None
    if parts.scheme.lower() not in ("", "http", "https") or misleading or not host:
        return None
    return host.lower().rstrip(".").removeprefix("www.")


def leads_to(address: str, domains: frozenset[str]) -> bool:
    """Return whether an address belongs to one of the domains or a subdomain; False if `host_of` returns None."""
    host = host_of(address) or ""
    return any(host == domain or host.endswith(f".{domain}") for domain in domains)


def addresses(text: str) -> frozenset[str]:
    """Return the http and https addresses that a text spells out, without the punctuation behind them.

    An address to be filled in counts, too: "https://host:port/login".
    """
    if "://" not in text:
        return frozenset()
    found = [match["target"] for match in _LABELLED.finditer(text)]
    found += [match.group().rstrip(_TRAILING) for match in _LINK.finditer(_LABELLED.sub("]", text))]
    return frozenset(one for one in found if _HTTP.match(one) and host_of(_PORT_TO_FILL_IN.sub("", one)) is not None)


def disarmed(address: str) -> str:
    """Defang an address, as security bulletins do, so that it stays readable: `https:[//]evil[.]example/x`."""
    return _HEAD.sub(lambda head: f"{head[1].replace('//', '[//]')}{head[2].replace('.', '[.]')}", address)


def rearmed(text: str) -> str:
    """Restore `disarmed` addresses in a text for comparison with the source; never show the result."""
    return text.replace("[//]", "//").replace("[.]", ".")


@lru_cache(maxsize=256)
def _code_spans(text: str) -> tuple[tuple[int, int], ...]:
    """Return the spans of code blocks and inline code in a Markdown text. Cached: a text is scanned several times."""
    return tuple(match.span() for match in _CODE.finditer(text)) if "`" in text or "~~~" in text else ()


def _is_code(text: str, position: int) -> bool:
    spans = _code_spans(text)
    following = bisect_right(spans, position, key=itemgetter(0))
    return following > 0 and position < spans[following - 1][1]


def without_links(
    text: str,
    is_welcome: Callable[[str], bool],
    is_known: Callable[[str], bool],
    instead: Callable[[str], str],
    may_load: Callable[[str], bool] | None = None,
) -> str:
    """Remove links that are not allowed. Idempotent; other text is unchanged.

    A Markdown link is reduced to its label, an address in brackets to the words before it; a picture is removed, and
    `instead` gives what replaces an address. In code, where an address can be part of a command, it stays readable, but
    `disarmed`.

    :param is_welcome: whether an address may be linked to.
    :param is_known: whether to keep text that only looks like an address: a bare host name or
        `s3://bucket`.
    :param may_load: whether a picture may be loaded from an address; by default from each that may be linked to.
    """

    def in_code(match: re.Match[str]) -> bool:
        return _is_code(match.string, match.start())

    def is_kept(match: re.Match[str], is_picture: bool) -> bool:
        address = match["target"]
        is_allowed = (may_load or is_welcome) if is_picture else is_welcome
        is_text = in_code(match) or _TITLE.fullmatch(match["title"]) is None
        return is_allowed(address) or (is_text and _followed(address) is None)

    def footed(match: re.Match[str]) -> str:
        return match.group() if in_code(match) or is_welcome(match[1] or match[2]) else ""

    def addressed(match: re.Match[str]) -> str:
        address = match.group().rstrip(_TRAILING)
        if address.lower() == "www":
            address += "."
        end = match.start() + len(address)
        clickable = match["address"] and (match["scheme"] or "http:").lower() in _CLICKABLE
        is_own = _EMPTY.fullmatch(address) or host_of(address) in _OWN_MACHINE or is_welcome(address)
        is_own = is_own and not (_HEAD.sub("", address) == "" and _HOST_GOES_ON.match(match.string, end))
        if is_own or (not clickable and is_known(address)):
            return match.group()
        rest = match.group()[len(address) :]
        if in_code(match):
            return disarmed(address) + rest
        # A bracket right behind the replacement, which can be in brackets itself, would make a link of it.
        return instead(address) + rest + " " * match.string.startswith("(", match.end())

    for _ in range(_ROUNDS):
        before = text
        text = _LINK.sub(addressed, _FOOTED.sub(footed, _labels(text, is_kept)))
        text = _harmless(text, instead)
        if text == before:
            break
    return text


def _labels(text: str, is_kept: Callable[[re.Match[str], bool], bool]) -> str:
    """Replace each link by its label, and remove each picture, unless it is kept."""
    edits: list[tuple[int, int]] = []
    opened: list[re.Match[str]] = []
    for match in _BRACKET.finditer(text):
        mark = match.group()
        if mark.endswith("\n"):  # a link is within a paragraph
            opened.clear()
        elif mark in ("[", "!["):
            opened.append(match)
        elif mark.startswith("]") and opened:
            opening = opened.pop()
            is_picture = opening.group() == "!["
            if match["target"] is None or is_kept(match, is_picture):
                continue
            edits += [(opening.start(), match.end())] if is_picture else [opening.span(), match.span()]
    kept, position = [], 0
    for start, end in sorted(edits):
        if start >= position:
            kept.append(text[position:start])
            position = end
    return "".join((*kept, text[position:]))


def _harmless(text: str, instead: Callable[[str], str]) -> str:
    """Replace each address that is not spelt out where a parser can find a target."""
    kept, position = [], 0
    while place := _PLACE.search(text, position):
        start = place.end("gap")
        in_code = _is_code(text, start)
        kept.append(text[position : place.end()])
        position = place.end()
        followed = _followed(place["scheme"], no_scheme=place.group() != "<" and not in_code)
        is_shown_script = place.group().endswith("=") and in_code and _SCRIPT.match(followed or "")
        if followed is None or is_shown_script or _SPELT_OUT.match(text, start):
            continue
        if (run := _RUN.match(text, start)) is None:
            continue
        target = run.group().rstrip(".,;!?")
        scheme, colon, tail = (_followed(target) or followed).partition(":")
        shown = f"{scheme}[:]{disarmed(tail)}" if colon else disarmed(followed)
        kept += [text[position:start], shown if in_code else instead(target)]
        position = start + len(target)
    return "".join((*kept, text[position:]))


def _followed(target: str, *, no_scheme: bool = False) -> str | None:
    """Return a target as an address that a browser follows, in one of the ways that parsers read it; None if none is.

    :param no_scheme: whether addresses count that begin with two slashes.
    """
    decoded = html.unescape(target)
    for reading in (target, decoded, _ESCAPED.sub(r"\1", decoded)):
        address = _STRIPPED.sub("", reading)
        if _FOLLOWED.match(address) or (no_scheme and _NO_SCHEME.match(address)):
            return address
    return None
