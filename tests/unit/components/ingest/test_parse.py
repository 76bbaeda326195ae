"""Files and lines become documents; invalid ones are refused by name and position."""

import json
import os
from pathlib import Path

import pytest

from components.ingest import files
from components.ingest.changes import Changed, SeenDocuments
from components.ingest.document import Refusal, Revision, SourceDocument
from components.ingest.files import RawArticle, count_articles, raw_articles
from components.ingest.formats.detect import Format
from components.ingest.parse import ArticleParser
from tenants.core.errors import CallerError

PARSER = ArticleParser()


def parse(data: str | bytes, form: Format = "json_lines", line: int = 1) -> SourceDocument | Refusal:
    raw = data if isinstance(data, bytes) else data.encode()
    return PARSER.parse(RawArticle(raw, form, f"dir/a.{'txt' if form == 'plain' else 'md'}", line))


def document(data: str | bytes, form: Format = "json_lines") -> SourceDocument:
    parsed = parse(data, form)
    assert isinstance(parsed, SourceDocument)
    return parsed


def code(parsed: SourceDocument | Refusal) -> str:
    assert isinstance(parsed, Refusal)
    return parsed.error.code


def test_further_keys_are_metadata() -> None:
    line = {
        "doc_id": "a",
        "title": "T",
        "text": "Title: x",
        "url": "u",
        "lang": "ru",
        "section": "s",
        "tags": ["b", "b"],
    }
    result = document(json.dumps(line))
    assert (result.doc_id, result.title, result.text, result.url, result.lang) == ("a", "T", "Title: x", "u", "ru")
    assert result.meta == {"section": "s", "tags": ["b"]}
    assert (result.source, result.line) == ("dir/a.md", 1)
    assert document('{"doc_id": 7, "text": "x", "title": null}').doc_id == "7"


def test_refused_lines() -> None:
    for line, expected in (
        ("{", "json_invalid"),
        ("[1]", "json_invalid"),
        ('{"doc_id": "a", "text": NaN}', "json_invalid"),
        ("[" * 100_000, "json_invalid"),
        (b'{"doc_id": "\xff"}', "file_undecodable"),
        ('{"text": "x"}', "doc_id_missing"),
        ('{"doc_id": " ", "text": "x"}', "doc_id_missing"),
        ('{"doc_id": ["a"], "text": "x"}', "doc_id_invalid"),
        ('{"doc_id": "a\\nb", "text": "x"}', "doc_id_invalid"),
        (json.dumps({"doc_id": "a" * 501, "text": "x"}), "doc_id_invalid"),
        ('{"doc_id": "a"}', "text_missing"),
        ('{"doc_id": "a", "text": " \\n"}', "text_missing"),
        ('{"doc_id": "a", "text": 5}', "field_invalid"),
        ('{"doc_id": "a", "text": "x \\ud800"}', "field_invalid"),
        ('{"doc_id": "a", "text": "x", "title": {}}', "field_invalid"),
        ('{"doc_id": "a", "text": "x", "trust": "holy"}', "metadata_invalid"),
        ('{"doc_id": "a", "text": "x", "status": 1}', "metadata_invalid"),
        ('{"doc_id": "a", "text": "x", "priority": 101}', "metadata_invalid"),
        ('{"doc_id": "a", "text": "x", "priority": true}', "metadata_invalid"),
        ('{"doc_id": "a", "text": "x", "tags": {"a": 1}}', "metadata_invalid"),
        ('{"doc_id": "a", "text": "x", "updated_at": "soon"}', "metadata_invalid"),
    ):
        refusal = parse(line)
        assert code(refusal) == expected
        assert isinstance(refusal, Refusal)
        assert (refusal.source, refusal.line) == ("dir/a.md", 1)


def test_only_web_addresses_become_citation_links() -> None:
    for url, taken in (
        ("https://example.com/a?b=c:d", True),
        ("/help/a:b", True),
        ("returns.html", True),
        ("javascript:alert(1)", False),
        ("java\nscript:alert(1)", False),
        (" javascript:alert(1)", False),
        ("data:text/html,x", False),
        ("JavaScript:/alert(1)", False),
    ):
        result = parse(json.dumps({"doc_id": "a", "text": "x", "url": url}))
        assert isinstance(result, SourceDocument) is taken
        assert taken or code(result) == "field_invalid"


def test_text_over_the_limit_is_refused() -> None:
    parser = ArticleParser(max_characters=3)
    assert code(parser.parse(SourceDocument("a", "", "abcd"))) == "text_too_long"
    assert isinstance(parser.parse(SourceDocument("a", "", "abc")), SourceDocument)


def test_front_matter_of_a_markdown_file() -> None:
    result = document("---\ntitle: T\ntags: [a]\nupdated_at: 2026-01-31\npriority: 5\n---\n# H\n", "markdown")
    assert (result.doc_id, result.title, result.text) == ("dir/a.md", "T", "# H\n")
    assert result.meta == {"tags": ["a"], "updated_at": "2026-01-31", "priority": 5}


def test_what_is_no_front_matter_stays_text() -> None:
    for text in (
        "Title: x\n\nbody",
        "---\nnot: [closed\n---\nbody",
        "---\njust text\n---\nbody",
        "---\na: &a [1]\nb: *a\n---\nx",
        "---\n",
    ):
        assert document(text, "markdown").text == text


def test_good_and_refused_articles_are_separated() -> None:
    good, bad = SourceDocument("a", "", "x"), SourceDocument("", "", "x")
    changed = [
        Changed(bad, "1"),
        Changed(good, "2"),
        Changed(RawArticle(b"{", "json_lines", "f", 3), "3"),
        Changed(good, "4"),
    ]
    parsed = ArticleParser().run(changed, SeenDocuments())
    assert parsed["revisions"] == [Revision(good, "2")]
    refusals = parsed["refusals"]
    assert isinstance(refusals, list)
    assert [(one.error.code, one.line) for one in refusals if isinstance(one, Refusal)] == [
        ("doc_id_missing", 0),
        ("json_invalid", 3),
        ("doc_id_duplicate", 0),
    ]


def test_a_folder_streams_in_order_and_refuses_by_file(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/x.md").write_text("hidden")
    (tmp_path / "b.md").write_text("# B")
    (tmp_path / "sub/a.TXT").write_text("A")
    (tmp_path / "c.jsonl").write_bytes(b'\xef\xbb\xbf{"doc_id": "c"}\n\n  \n{"doc_id": "d"}')
    (tmp_path / "d.ppt").write_bytes(b"x")
    (tmp_path / "e.md").write_text(" \n")
    (tmp_path / "f.md").symlink_to("/etc/hostname")
    results = list(raw_articles(tmp_path))
    assert [(one.source, one.line, one.format) for one in results if isinstance(one, RawArticle)] == [
        ("b.md", 0, "markdown"),
        ("c.jsonl", 1, "json_lines"),
        ("c.jsonl", 4, "json_lines"),
        ("sub/a.TXT", 0, "plain"),
    ]
    assert [(one.source, one.error.code) for one in results if isinstance(one, Refusal)] == [
        ("d.ppt", "file_unsupported"),
        ("e.md", "file_empty"),
    ]
    assert count_articles(tmp_path) == 6


def test_a_line_over_the_limit_is_refused_and_the_next_one_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MAX_ARTICLE_BYTES", 20)
    (tmp_path / "a.jsonl").write_bytes(b"x" * 70 + b'\n{"doc_id": "c"}\n')
    refusal, article = raw_articles(tmp_path / "a.jsonl")
    assert isinstance(refusal, Refusal)
    assert (refusal.error.code, refusal.line) == ("line_too_large", 1)
    assert isinstance(article, RawArticle)
    assert (article.data, article.line) == (b'{"doc_id": "c"}\n', 2)
    (tmp_path / "b.md").write_bytes(b"x" * 21)
    with pytest.raises(CallerError, match="file_too_large"):
        list(raw_articles(tmp_path / "b.md"))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("missing", "path_missing"),
        ("empty.md", "file_empty"),
        ("empty.jsonl", "file_empty"),
        ("blank.jsonl", "file_empty"),
        ("a.ppt", "file_unsupported"),
        ("pipe.md", "file_unreadable"),
        ("folder", "folder_empty"),
    ],
)
def test_a_path_that_cannot_be_read_raises(tmp_path: Path, name: str, expected: str) -> None:
    for empty in ("empty.md", "empty.jsonl", "a.ppt"):
        (tmp_path / empty).touch()
    (tmp_path / "blank.jsonl").write_text("\n \n")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe.md")
    with pytest.raises(CallerError, match=expected):
        list(raw_articles(tmp_path / name))
