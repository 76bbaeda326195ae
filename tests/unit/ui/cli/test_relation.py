"""`opora edge` and `opora rejected`."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import cli
from settings import Settings


@pytest.fixture(autouse=True)
def _documents(installation: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "en_GB.UTF-8")
    articles = tmp_path / "articles"
    articles.mkdir()
    (articles / "old.md").write_text("# Old\n\nReturn within 14 days.\n")
    (articles / "new.md").write_text("---\nsupersedes: old.md\n---\n# New\n\nReturn within 30 days.\n")
    assert opora("ingest", str(articles)).exit_code == 0


def opora(*arguments: str) -> Result:
    return CliRunner().invoke(cli.app, list(arguments))


def test_edges_are_shown_set_and_removed() -> None:
    listed = json.loads(opora("edge", "list", "--json").stdout)["edges"]
    assert [(edge["from_doc"], edge["kind"], edge["declared"]) for edge in listed] == [("new.md", "supersedes", True)]
    assert opora("edge", "add", "old.md", "related_to", "new.md", "--weight", "0.5").exit_code == 0
    shown = opora("edge", "list", "--doc", "old.md").stdout
    assert "related_to" in shown
    assert "0.5" in shown
    assert opora("edge", "remove", "old.md", "related_to", "new.md").exit_code == 0
    assert "related_to" not in opora("edge", "list").stdout


def test_a_mistake_is_one_line_that_says_what_to_do() -> None:
    for arguments, expected in (
        (("edge", "add", "old.md", "likes", "new.md"), "no such kind of edge: likes"),
        (("edge", "add", "old.md", "related_to", "new.md", "--weight", "2"), "from 0 to 1"),
        (("edge", "add", "old.md", "related_to", "old.md"), "two different documents"),
        (("edge", "add", "old.md", "related_to", "none.md"), "no such document"),
        (("edge", "remove", "old.md", "related_to", "new.md"), "opora edge list"),
        (("rejected", "add", " "), "1 to 300 characters"),
        (("rejected", "add", "Glue it", "--day", "yesterday"), "1 to 300 characters"),
        (("rejected", "remove", "nothing"), "opora rejected list"),
    ):
        result = opora(*arguments)
        assert result.exit_code == 2
        assert expected in result.stderr
        assert result.stderr.count("\n") == 1


def test_rejected_approaches_are_shown_set_and_removed() -> None:
    assert opora("rejected", "add", "Glue it", "--reason", "It breaks", "--doc", "old.md").exit_code == 0
    (approach,) = json.loads(opora("rejected", "list", "--json").stdout)["rejected"]
    assert (approach["text"], approach["reason"], approach["doc_id"]) == ("Glue it", "It breaks", "old.md")
    assert "Glue it" in opora("rejected", "list").stdout
    assert opora("rejected", "remove", approach["rejected_id"]).exit_code == 0
    assert json.loads(opora("rejected", "list", "--json").stdout)["rejected"] == []
