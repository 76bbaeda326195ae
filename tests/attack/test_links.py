"""Links to foreign sites in an answer, in each spelling that some renderer follows."""

import html
from time import process_time
from urllib.parse import urljoin, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from components.language.links import leads_to, without_links

OWN = frozenset({"shop.com"})
MOST_SECONDS = 1.0
ADDRESSES = (
    "http:/evil.com/x",
    "https:evil.com",
    "https://evil.com/",
    "//evil.com/x",
    "http:///evil.com",
    "https:\\\\evil.com",
    "http\\:/evil.com/x",
    "http&colon;/evil.com",
    "h&#116;tp:/evil.com",
    "ftp:evil.com",
    "https://shop.com@evil.com/",
    "https://shop.com&commat;evil.com/",
    'https://shop.com"@evil.com/',
    'https://shop.com"\\@evil.com/',
    "https://shop.com`.evil.com/",
    "https://shop.comwww.evil.com/",
    "https://evil.com&sol;.shop.com/",
    "https://evil.com*a*.shop.com/",
    'https://"@evil.com/',
    "https://]@evil.com/",
    "javascript:alert(1)",
)
WRAPPINGS = (
    "{}",
    "<{}>",
    "[a]({})",
    "[a [b]](<{}>)",
    "![a [b]]({})",
    "[a](\n{} 'b')",
    "[a]\n\n[a]: {}",
    "> [a]\n>\n> [a]:\n> <{}>",
    "| ` | b |\n|---|---|\n| ` | <{}> ` |",
    ">>>>>>>>>>>>>>>>>>>>>>>>> <{}>",
    "https://shop.com/` <{}> `",
    "<x>\t\n<{}>",
    "```\n``` x\n<{}>\n```",
    "`a\n- <{}> `",
)
PIECES = (
    *ADDRESSES,
    *"[]()<>`!\\|:\"'&@.-#*",
    "[a]: ",
    "](",
    "[a](",
    "\n",
    "\n\n",
    "```",
    "~~~",
    "> ",
    "    ",
    "<x>",
    "<!--",
)
PARSERS = (MarkdownIt("commonmark"), MarkdownIt("commonmark").enable(["table", "strikethrough"]))
for parser in PARSERS:
    parser.validateLink = lambda _: True  # type: ignore[assignment,method-assign]  # other renderers may follow any


def cleaned(text: str) -> str:
    return without_links(text, lambda address: leads_to(address, OWN), lambda _: False, lambda _: "[link removed]")


def is_foreign(target: str) -> bool:
    try:
        address = urlsplit(urljoin("https://shop.com/", target.replace("\\", "/")))
    except ValueError:
        return False
    return (
        address.scheme == "javascript" or "evil" in (address.hostname or "") or target.startswith(("http:/", "https:e"))
    )


def foreign_targets(text: str) -> list[str]:
    def targets(tokens: list[Token]) -> list[str]:
        found = [str(token.attrGet("href") or token.attrGet("src") or "") for token in tokens]
        return found + [target for token in tokens for target in targets(token.children or [])]

    return [target for parser in PARSERS for target in targets(parser.parse(text)) if is_foreign(html.unescape(target))]


@pytest.mark.parametrize("wrapping", WRAPPINGS)
def test_no_spelling_of_a_link_is_followed(wrapping: str) -> None:
    for address in ADDRESSES:
        shown = cleaned(f"Код E20: {wrapping.format(address)}")
        assert foreign_targets(shown) == []
        assert cleaned(shown) == shown


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_no_joint_of_pieces_is_followed(text: str) -> None:
    shown = cleaned(text)
    assert foreign_targets(shown) == []
    assert cleaned(shown) == shown


@pytest.mark.parametrize(
    "unit", ["[", "[a](", "[[a](x)](x)", "<http:", "]:&#", "href=", 'shop.com"', "`[a](x:y)`", "```\n", "//", "ftp://"]
)
def test_links_of_a_long_answer_take_no_time(unit: str) -> None:
    started_at = process_time()
    cleaned(unit * (100_000 // len(unit)))
    cleaned(f"[{unit * (100_000 // len(unit))}](http:/evil.com)")
    assert process_time() - started_at < 2 * MOST_SECONDS


def test_an_address_inside_an_address_ends() -> None:
    assert cleaned("`evil.com/xhttps://evil.com/1`") == "`evil[.]com/xhttps:[//]evil[.]com/1`"
