"""HTML pages: the main content as Markdown, without navigation and hidden text.

A pass over the tree leaves out and names; html-to-markdown writes the Markdown. trafilatura (2.3.1) would do both, but
returns text of `hidden` and `font-size:0` elements as content, and an instruction to a model hides exactly there; on
1,183 articles it found no more at seven times the time. markitdown (0.1.8) has the same gap and takes twelve times as
long as this reader.
"""

import re
from collections.abc import Iterator
from copy import deepcopy
from urllib.parse import urljoin, urlsplit

from html_to_markdown import ConversionOptions, PreprocessingOptions, convert
from lxml import etree
from lxml.html import defs

from components.ingest.formats import properties, writing
from components.ingest.formats.encoding import decoded
from components.ingest.formats.parsed import MAX_DEPTH, Parsed
from components.language.normalise import clean
from tenants.core.errors import Invalid

_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.IGNORECASE)
_DECLARED_WITHIN = 4_096
_DROPPED = (
    "script style noscript template nav footer aside form button select input textarea iframe svg canvas object embed "
    "audio video map dialog"
).split()
_ICONS = frozenset({"button", "svg", "i"})
"""Elements without content that a sentence may refer to: "press <the button>"."""
_ROLES = frozenset({"navigation", "banner", "contentinfo", "search", "complementary", "menu", "dialog"})
_AROUND = re.compile(
    r"(?:^|[\s_-])(?:nav|navbar|navigation|breadcrumbs?|sidebar|cookies?|footer|pagination|share|social)(?:$|[\s_-])",
    re.IGNORECASE,
)
_HIDING = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)|font-size\s*:\s*0(?![.\d]*[1-9])|opacity\s*:\s*0(?![.\d]*[1-9])",
    re.IGNORECASE,
)
_CHANGED = ("article:modified_time", "og:updated_time", "last-modified", "dcterms.modified", "article:published_time")
_FOLLOWED = frozenset({"http", "https", "mailto", "tel"})
_VERBATIM = frozenset({"pre", "code", "kbd", "samp", "tt"})
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_ATTRIBUTES = frozenset({"href", "alt", "start", "class", "colspan"})
_RENAMED = {"summary": "h4", "dl": "ul", "dd": "li"}
"""The question of a fold-out section is a heading below those of a page; a definition is an item with its term."""
_MAX_SPAN = 100
_ESCAPE = "\ue000"
_BACKSLASH = re.compile(r"\\(?=[!-/:-@\[-`{-~])")
_ELEMENTS = defs.tags | {"bdi", "data", "dialog", "main", "nobr", "picture", "slot", "template"}
_BARE_TAG = re.compile(r"<(?=([a-z][\w.:-]*)(?:\s[^<>=/]*)?>)", re.IGNORECASE)
_CLOSING_TAG = re.compile(r"</([a-z][\w.:-]*)", re.IGNORECASE)
_OPTIONS = ConversionOptions(
    heading_style="atx",
    bullets="-",
    autolinks=False,
    extract_metadata=False,
    preprocessing=PreprocessingOptions(enabled=False),
)


def read(data: bytes, url: str = "") -> Parsed:
    """Return the main content of a page.

    :param url: where the page is from. Relative links are resolved against it, or against the page's own address.
    """
    root = _tree(_text(data))
    head = _head(root)
    base = urljoin(url or head.get("canonical", ""), head.get("base", ""))
    hidden = _leave_out_hidden(root)
    _name_icons(root)
    content = _main(root)
    headings = [" ".join(_text_of(heading).split()) for heading in content.iter("h1")]
    # The title of the window often names the site as well.
    title = next(filter(None, headings), "") or head.get("og:title") or head.get("title", "")
    time = next((element.get("datetime", "") for element in content.iter("time") if element.get("datetime")), "")
    _, meta = properties.described("", head.get("author"), *(head.get(name) for name in _CHANGED), time)
    address = url or head.get("canonical", "")
    if address.startswith(("http://", "https://")):
        meta["url"] = address
    text = _markdown(content, base)
    return Parsed(properties.plausible_title(title), text, meta=meta, flags=("hidden_text",) if hidden else ())


def _text(data: bytes) -> str:
    """Return the page's text in the encoding that it declares, unless its bytes say otherwise."""
    declared = _CHARSET.search(data, 0, _DECLARED_WITHIN)
    try:
        return data.decode()
    except UnicodeDecodeError:
        pass
    if declared is not None and not data.startswith((b"\xff\xfe", b"\xfe\xff")):
        try:
            return data.decode(declared[1].decode("ascii"))
        except (LookupError, UnicodeDecodeError):
            pass
    return decoded(data)


def _tree(text: str) -> etree._Element:
    parser = etree.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, no_network=True)
    with Invalid("file_damaged").instead_of(etree.XMLSyntaxError):
        root = etree.fromstring(_with_placeholders(clean(text)).encode("utf-8", "replace"), parser)
    if root is None:
        raise Invalid("text_missing")
    deepest = depth = 0
    for event, _ in etree.iterwalk(root, events=("start", "end")):
        depth += 1 if event == "start" else -1
        deepest = max(deepest, depth)
    if deepest > MAX_DEPTH:
        raise Invalid("file_too_deep")
    return root


def _with_placeholders(html: str) -> str:
    """Escape tags that no browser knows and nothing closes: `cd <JazzSM_HOME>/bin`, where an author forgot to."""
    known = _ELEMENTS.union(match[1].lower() for match in _CLOSING_TAG.finditer(html))
    return _BARE_TAG.sub(lambda tag: tag[0] if tag[1].lower() in known else "&lt;", html)


def _head(root: etree._Element) -> dict[str, str]:
    """Return title, base, canonical address and named values of a page's head."""
    named: dict[str, str] = {}
    for element in root.iter("title", "base", "link", "meta"):
        name, value = str(element.tag), element.get("href", "")
        if element.tag == "title":
            value = _text_of(element)
        elif element.tag == "link":
            name = element.get("rel", "")
        elif element.tag == "meta":
            name = element.get("property") or element.get("name") or element.get("http-equiv") or ""
            value = element.get("content", "")
        if name and value.strip():
            named.setdefault(name.lower(), " ".join(value.split()))
    return named


def _text_of(element: etree._Element) -> str:
    return "".join(map(str, element.itertext()))


def _leave_out_hidden(root: etree._Element) -> bool:
    """Leave out the elements that a page itself hides. Return whether any had text that is content elsewhere."""
    found = False
    for element in root.iter(etree.Element):
        if element.get("hidden", "until-found") != "until-found" or _HIDING.search(element.get("style", "")):
            found = found or (element.tag not in _DROPPED and bool(_text_of(element).strip()))
            _empty(element)
    return found


def _name_icons(root: etree._Element) -> None:
    """Put the accessible names of icons and buttons in their place, and leave out other elements without content."""
    for element in root.iter(*_DROPPED, "i"):
        if element.tag == "i" and _text_of(element).strip():
            continue
        titles = (_text_of(title) for title in element.iter("title"))
        names = [element.get("aria-label"), element.get("title"), *titles] if element.tag in _ICONS else []
        names += [_text_of(element)] if element.tag == "button" else []
        name = " ".join(next((name for name in names if name and name.strip()), "").split())
        _empty(element)
        if name:
            element.tag = "img"
            element.set("alt", name)


def _empty(element: etree._Element) -> None:
    """Leave nothing of an element but the text that follows it."""
    tail = element.tail
    element.clear()
    element.tag = "span"
    element.tail = tail


def _main(root: etree._Element) -> etree._Element:
    """Return the element with the content of the page: `main`, the only `article`, else the body."""
    marked = [*root.iter("main"), *(part for part in root.iter("div", "section") if part.get("role") == "main")]
    articles = [element for element in root.iter("article") if next(element.iterancestors("article"), None) is None]
    for candidates in (marked, articles):
        if len(candidates) == 1 and _text_of(candidates[0]).strip():
            return _without_surroundings(candidates[0], inside=True)
    return _without_surroundings(next(root.iter("body"), root), inside=False)


def _without_surroundings(content: etree._Element, *, inside: bool) -> etree._Element:
    for element in content.iter(etree.Element):
        names = f"{element.get('class', '')} {element.get('id', '')}"
        around = element.get("role", "").lower() in _ROLES or _AROUND.search(names) is not None
        # The header of a page is not its content; that of an article holds its title.
        heads = element.tag == "header" and not inside and next(element.iter("h1"), None) is None
        if (around or heads) and element is not content:
            _empty(element)
    return content


def _markdown(content: etree._Element, base: str) -> str:
    content.tail = None
    for table in [*content.iter("table")]:
        _plain_table(table)
    for items in [*content.iter("ul")]:
        _plain_list(items)
    for element in content.iter(etree.Element):
        tag, href = element.tag, element.get("href", "")
        verbatim = next(element.iterancestors(*_VERBATIM), None) is not None
        if element.tail and not verbatim:
            element.tail = _escaped(element.tail)
        if element.text and not verbatim and tag not in _VERBATIM:
            element.text = _escaped(element.text)
        if tag == "img" and not element.get("alt", "").strip():
            element.set("alt", element.get("title", ""))
        for name in {*map(str, element.attrib)} - _ATTRIBUTES:
            del element.attrib[name]
        if tag == "a":
            element.set("href", _address(href, base))
        elif tag == "img":
            words = next((_text_of(around) for around in element.iterancestors("a", *_HEADINGS)), "")
            # Beside the words of a link or a heading an icon says nothing more.
            element.set("src", "#")
            if words.strip():
                _empty(element)
        elif tag in _RENAMED:
            element.tag = _RENAMED[tag]
        if tag == "dd" and (term := element.getprevious()) is not None and element.getparent() is not None:
            element.text = f"{_text_of(term).strip()}: {element.text or ''}" if term.tag == "dt" else element.text
            if term.tag == "dt":
                _empty(term)
    html = etree.tostring(content, encoding="unicode", method="html")
    return (convert(html, _OPTIONS).content or "").strip().replace(_ESCAPE, "\\")


def _escaped(text: str) -> str:
    """Escape only the characters that would be markup; the converter would escape every hyphen."""
    return _BACKSLASH.sub(_ESCAPE, writing.fragment(text))


def _address(href: str, base: str) -> str:
    try:
        address = urljoin(base, href.strip())
        followed = urlsplit(address).scheme in _FOLLOWED
    except ValueError:
        return ""
    return re.sub(r"[\s<>()\\]", lambda match: f"%{ord(match[0]):02X}", address) if followed else ""


def _plain_table(table: etree._Element) -> None:
    """Turn a table for layout only into blocks; repeat a cell over several rows in each of them."""
    rows = [[cell for cell in row if cell.tag in {"td", "th"}] for row in _rows(table)]
    nested = any(next(cell.iter("table", "h1", "h2", "h3"), None) is not None for row in rows for cell in row)
    if nested or max(map(len, rows), default=0) < 2 or table.get("role") == "presentation":
        for element in table.iter("table", "thead", "tbody", "tfoot", "tr", "td", "th"):
            element.tag = "div"
        return
    spanned: dict[int, tuple[int, etree._Element]] = {}
    for row in _rows(table):
        column = 0
        for cell in [*row.iterchildren("td", "th")]:
            column = _filled(row, cell, column, spanned)
            down = _span(cell, "rowspan")
            if down > 1:
                del cell.attrib["rowspan"]
                spanned[column] = (down - 1, cell)
            column += _span(cell, "colspan")
        _filled(row, None, column, spanned)


def _plain_list(items: etree._Element) -> None:
    """Turn a list whose items have headings, such as fold-out questions, into blocks."""
    if next(items.iter(*_HEADINGS, "summary"), None) is not None:
        items.tag = "div"
        for item in items.iterchildren("li"):
            item.tag = "div"


def _rows(table: etree._Element) -> Iterator[etree._Element]:
    return (row for row in table.iter("tr") if next(row.iterancestors("table"), None) is table)


def _filled(
    row: etree._Element, cell: etree._Element | None, column: int, spanned: dict[int, tuple[int, etree._Element]]
) -> int:
    """Insert the cells of rows above that reach into `row` before `cell`. Return the next free column."""
    while spanned.get(column, (0,))[0]:
        left, above = spanned[column]
        spanned[column] = (left - 1, above)
        copied = deepcopy(above)
        copied.tail = None
        if cell is None:
            row.append(copied)
        else:
            cell.addprevious(copied)
        column += _span(above, "colspan")
    return column


def _span(cell: etree._Element, name: str) -> int:
    number = cell.get(name, "1").strip()
    return min(int(number), _MAX_SPAN) if number.isdecimal() and len(number) < 6 else 1
