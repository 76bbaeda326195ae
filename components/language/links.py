"""Links in a text: all that a chat window would turn into something to click on, or would load by itself.

Recognised are Markdown links and pictures, addresses with a scheme or a leading `www.`, and bare names of hosts
(`example.com/offer`) under the top-level domains that chat windows know.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any
from urllib.parse import unquote, urlsplit

from markdown_it import MarkdownIt

_TOP = (
    "com|net|org|info|biz|io|ru|su|рф|by|kz|ua|eu|us|uk|de|cn|me|co|cc|tv|ly|"
    "app|dev|site|online|shop|store|xyz|top|club|link|click"
)
_MARKDOWN = re.compile(r"!?\[([^\[\]\n]*+)\]\(\s*+<?([^()\s<>]*+(?:\([^()\s<>]*+\)[^()\s<>]*+)*+)[^()\n]*+\)")
_TARGET = re.compile(r"\]\((?=\s*+<?(?:(?!https?://)[a-z0-9+.-]*+[:&\\]|[\\/]\\))", re.IGNORECASE)
"""A link, whatever its label, to an address without the two slashes, or with some of it escaped: browsers read
`http:/host` and `https&colon;host` as `https://host`."""
_SCHEMES = "(?:https?|ftp|file|data|javascript|vbscript):"
_AUTOLINK = re.compile(rf"<(?={_SCHEMES}(?!//))", re.IGNORECASE)
"""The same in angle brackets, also in code: parsers differ about where code ends."""
_NEAR_TARGET = re.compile(r"\](?=[(:])|<(?=[a-z][a-z0-9+.-]*:)", re.IGNORECASE)
_FOLLOWED = re.compile(rf"{_SCHEMES}|//", re.IGNORECASE)
# An address ends where another begins, so that none hides in the tail of a welcome one.
_LINK = re.compile(
    r"(?i)(?P<address>(?<![\w/])(?:(?P<scheme>[a-z][a-z0-9+.-]{1,20}:)?//(?!\])(?=(?P<dotted>[^\s/]*\.)?)(?:www\.)?|www\.)"
    r"(?:(?!https?://|www\.)[^\s<>\"'`«»{}|])+)"
    rf"|(?<![\w@./\\:-])(?:[^\W_](?:[\w-]{{0,62}}[^\W_])?\.){{1,8}}(?:{_TOP})(?![\w-]|\.\w)(?:[/:?#][^\s<>\"'`«»]*)?"
)
_HINT = re.compile(rf"(?i)//|\]\(|www\.|\.(?:{_TOP})(?!\w)|{_SCHEMES}")
_FOOTED = re.compile(
    r"(?<=[\w)»\"'®™*])[ \t]*(?:\[[ \t]*((?:https?|ftp)://[^\s\[\]<>]+)[ \t]*\]"
    r"|\([ \t]*((?:https?|ftp)://[^\s()\[\]<>]+)[ \t]*\))",
    re.IGNORECASE,
)
"""An address in brackets behind the words that it is linked to, as exports of pages and models write links."""
_CODE = re.compile(r"(?ms)^[ \t]*(?P<fence>```|~~~).*?(?:^[ \t]*(?P=fence)[ \t]*$|\Z)|(?<![\\`])`[^`\n]+`(?!`)")
"""A block of code or a span of it, of which a chat window makes no links by itself."""
_SCHEME = re.compile(r"\s*(?:[a-z][a-z0-9+.-]*:|//)", re.IGNORECASE)
_HTTP = re.compile("https?://", re.IGNORECASE)
_PORT_TO_FILL_IN = re.compile(r":[A-Za-z_]+(?=/|\Z)")
_HEAD = re.compile(r"\A((?:(?:[a-z][a-z0-9+.-]*:)?//)?)([^/?#]*)", re.IGNORECASE)
_PARSER = MarkdownIt("commonmark")
_PARSER.validateLink = lambda _: True  # type: ignore[assignment,method-assign]  # other renderers may follow any
_CLICKABLE = frozenset({"http:", "https:", "ftp:"})
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
    found = [match[2] for match in _MARKDOWN.finditer(text)]
    found += [match.group().rstrip(_TRAILING) for match in _LINK.finditer(_MARKDOWN.sub(r"\1", text))]
    return frozenset(one for one in found if _HTTP.match(one) and host_of(_PORT_TO_FILL_IN.sub("", one)) is not None)


def disarmed(address: str) -> str:
    """Defang an address, as security bulletins do, so that it stays readable: `https:[//]evil[.]example/x`."""
    return _HEAD.sub(lambda head: f"{head[1].replace('//', '[//]')}{head[2].replace('.', '[.]')}", address)


def rearmed(text: str) -> str:
    """Restore `disarmed` addresses in a text for comparison with the source; never show the result."""
    return text.replace("[//]", "//").replace("[.]", ".")


@lru_cache(maxsize=256)
def code_spans(text: str) -> tuple[tuple[int, int], ...]:
    """Return the spans of code blocks and inline code in a Markdown text. Cached: a text is scanned several times."""
    return tuple(match.span() for match in _CODE.finditer(text)) if "`" in text or "~~~" in text else ()


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
    if _HINT.search(text) is None:
        return text

    def in_code(match: re.Match[str]) -> bool:
        return any(start <= match.start() < end for start, end in spans)

    def labelled(match: re.Match[str]) -> str:
        picture = match.group().startswith("!")
        is_allowed = (may_load or is_welcome) if picture else is_welcome
        if is_allowed(match[2]) or (in_code(match) and not _SCHEME.match(match[2])):
            return match.group()
        return "" if picture else match[1]

    def footed(match: re.Match[str]) -> str:
        return match.group() if in_code(match) or is_welcome(match[1] or match[2]) else ""

    def addressed(match: re.Match[str]) -> str:
        address = match.group().rstrip(_TRAILING)
        clickable = match["address"] and (match["scheme"] or "http:").lower() in _CLICKABLE
        comment = address.startswith("//") and not match["dotted"]
        is_own = comment or host_of(address) in _OWN_MACHINE
        if is_own or is_welcome(address) or (not clickable and is_known(address)):
            return match.group()
        return (disarmed(address) if in_code(match) else instead(address)) + match.group()[len(address) :]

    before = None
    while before != text:  # a picture can be the label of a link
        before, spans = text, code_spans(text)
        text = _MARKDOWN.sub(labelled, text)
    text = _AUTOLINK.sub("< ", _TARGET.sub("] (", text))
    spans = code_spans(text)
    text = _FOOTED.sub(footed, text)
    before = None
    while before != text:  # an address can carry another in its tail
        before, spans = text, code_spans(text)
        text = _LINK.sub(addressed, text)
    return _NEAR_TARGET.sub(r"\g<0> ", text) if _leads_astray(text, is_welcome, may_load or is_welcome) else text


def _leads_astray(text: str, is_welcome: Callable[[str], bool], may_load: Callable[[str], bool]) -> bool:
    """Return whether a Markdown parser finds a link or a picture whose address was not checked.

    Patterns differ from a parser about code, references and escapes.
    """
    found: dict[str, Any] = {}
    targets: list[str] = []
    for token in _PARSER.parse(text, found):
        for part in token.children or ():
            source = str(part.attrGet("src") or "")
            if _FOLLOWED.match(source) and not any(map(may_load, (source, unquote(source)))):
                return True
            targets.append(str(part.attrGet("href") or ""))
    targets += [str(reference["href"]) for reference in found.get("references", {}).values()]
    if not any(map(_FOLLOWED.match, targets)):
        return False
    checked = [match[2] for match in _MARKDOWN.finditer(text)]
    checked += [match.group().rstrip(_TRAILING) for match in _LINK.finditer(text)]
    known = {_PARSER.normalizeLink(address) for address in checked}
    return any(
        _FOLLOWED.match(target) and target not in known and not any(map(is_welcome, (target, unquote(target))))
        for target in targets
    )
