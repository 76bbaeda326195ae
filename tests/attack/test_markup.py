"""Articles, files and pages that once held the interpreter, and with it every tenant, for minutes."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from time import process_time

import pytest

from components.ingest.crawl import Crawl, page_links, sitemap_urls
from components.ingest.cut import cut
from components.ingest.document import Refusal, SourceDocument
from components.ingest.fetch import Fetcher, Response
from components.ingest.files import RawArticle
from components.ingest.formats.tables import read_csv
from components.ingest.formats.text import read_markdown, read_plain
from components.ingest.pack import Sizes
from components.ingest.parse import ArticleParser
from components.language.marks import HEADING_LINE
from tenants.core.errors import Invalid
from tests.unit.components.ingest.site import HTML, serving

MOST_SECONDS = 1.0
SIZES = Sizes(200, 500, 50, 50)
IN_PROCESS = 19_000
"""Characters of an article that is cut in the process of the service."""


def article(text: str) -> SourceDocument:
    return SourceDocument("a.md", "Filter", text)


def repeated(unit: str, length: int) -> str:
    return (unit * length)[:length]


@pytest.mark.parametrize("tag", ["br", "b"])
@pytest.mark.parametrize("unit", ["=", "a=b "])
def test_markup_of_an_article_takes_no_time(tag: str, unit: str) -> None:
    started_at = process_time()
    cut(article(f"<div>\n<{tag} {repeated(unit, IN_PROCESS)}"), SIZES)
    assert process_time() - started_at < MOST_SECONDS


@pytest.mark.parametrize(
    "text",
    [
        f"# a{repeated(' ', 40_000)}b",
        f"# a{repeated(' #', 40_000)}b",
        f"Q: a\n# a{repeated(' ', 40_000)}b",
        f"---\na: {repeated('[', IN_PROCESS)}\n---\n",
        f"---\na: {repeated('{', IN_PROCESS)}\n---\n",
    ],
    ids=["title", "title with marks", "heading", "lists", "objects"],
)
def test_a_text_file_is_read_in_no_time(text: str) -> None:
    started_at = process_time()
    for read in (read_markdown, read_plain):
        read(text.encode())
    assert process_time() - started_at < MOST_SECONDS


@pytest.mark.parametrize("space", [" ", "\n", "\n "])
def test_white_space_makes_no_chunk_long(space: str) -> None:
    text = f"The filter costs 5 euro.\n\n~~~\n# filter{repeated(space, 100_000)}x\n~~~\n"
    chunks = cut(article(text), SIZES).chunks
    assert sum(len(chunk.text) for chunk in chunks) < 500


def test_a_heading_in_a_chunk_is_found_in_no_time() -> None:
    heading = f"Filter{repeated(' #', 40_000)}x"
    started_at = process_time()
    assert HEADING_LINE.findall(f"text\n## {heading} #\ntext") == [heading]
    assert process_time() - started_at < MOST_SECONDS


@pytest.mark.parametrize("url", [repeated("/", 40_000), repeated("a?", 40_000)])
def test_an_address_of_an_article_is_checked_in_no_time(url: str) -> None:
    started_at = process_time()
    refused = ArticleParser().parse(SourceDocument("a.md", "Filter", "Text", url=f"{url} "))
    assert isinstance(refused, Refusal)
    assert refused.error.code == "field_invalid"
    assert process_time() - started_at < MOST_SECONDS


@pytest.mark.parametrize("url", [f"https://{'a.' * 1_000}example/", f"/{'a' * 2_000}"])
def test_a_long_address_of_an_article_is_refused(url: str) -> None:
    refused = ArticleParser().parse(SourceDocument("a.md", "Filter", "Text", url=url))
    assert isinstance(refused, Refusal)
    assert refused.error.params == {"field": "url"}


def test_columns_of_a_table_that_few_rows_have_take_no_time() -> None:
    started_at = process_time()
    read_csv(b"," * 6_000 + b"x\n" + b"a\n" * 6_000)
    assert process_time() - started_at < MOST_SECONDS


def test_cells_that_a_table_lacks_take_no_time() -> None:
    table = "\n".join([f"{'|a' * 181}|", f"{'|-' * 181}|", *["x"] * 362])
    chunks = cut(article(table), SIZES).chunks
    assert sum(len(chunk.text) for chunk in chunks) < 10 * len(table)


def test_comments_before_a_page_take_no_time() -> None:
    body = f"{'<!---->' * 24}<p>Filter</p>".encode()
    crawl = Crawl(Fetcher(permitted=lambda address: address == "127.0.0.1"), pause=0)
    started_at = process_time()
    with serving({"/help/": (200, HTML, body)}) as site:
        [page] = crawl.articles(f"{site.url}/help/")
    assert isinstance(page, RawArticle)
    assert process_time() - started_at < MOST_SECONDS


@pytest.mark.parametrize(
    "inside",
    [
        b"<a>" * 2_000_000,
        b"<loc/>" * 1_000_000,
        b"<a " + b" ".join(b"a%d='>'" % number for number in range(400_000)) + b"/>",
    ],
    ids=["nested", "empty addresses", "attributes"],
)
def test_a_sitemap_does_not_hold_the_interpreter(inside: bytes) -> None:
    with longest_pause() as pauses, suppress(Invalid):
        sitemap_urls(b"<urlset>" + inside + b"</urlset>")
    assert max(pauses) < MOST_SECONDS


def test_the_base_of_a_page_is_read_once() -> None:
    html = f"<base href=/{'b' * 3_000_000}>{'<a href=c>' * 1_000}"
    started_at = process_time()
    links = list(page_links(Response("https://shop.example/help/", 200, "text/html", html.encode())))
    assert links == ["https://shop.example/help/c"] * 1_000
    assert process_time() - started_at < MOST_SECONDS


@contextmanager
def longest_pause() -> Iterator[list[float]]:
    """Measure how much the process computes during the block while another thread does not run."""
    pauses, over = [0.0], Event()

    def watch() -> None:
        before = process_time()
        while not over.wait(0.005):
            now = process_time()
            pauses.append(now - before)
            before = now

    watching = Thread(target=watch)
    watching.start()
    try:
        yield pauses
    finally:
        over.set()
        watching.join()
