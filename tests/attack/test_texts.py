"""Short texts that once took many seconds: nothing else is computed in the process meanwhile."""

from itertools import product
from pathlib import Path
from time import process_time

import pytest
from starlette.testclient import TestClient

import app
from components.answer.utterances import _END
from components.language.keyboard import layout
from components.language.links import leads_to
from components.language.normalise import clean
from components.language.spelling import spelling
from components.language.transliteration import transliterations
from components.language.vocabulary import Vocabulary
from components.language.words import all_words
from components.understand.parts import parts_of
from evaluation.benchmarks.attacks import SHOP
from pipelines.ask.chats.incoming import MAX_BYTES, read
from settings import Settings
from tenants.access.tokens import issue
from tenants.accounts.registry import Registry
from tenants.chats import mail, sites
from tenants.chats.mail import Reference
from tenants.core.context import Tenant, acting_as
from tests.attack.attacking import ATTACKER
from tests.service.serving import ALL_SCOPES, in_force
from ui.help import pages

MOST_SECONDS = 2.0
QUESTION = 2_000


@pytest.mark.parametrize("unit", ['"', "«", '" ', "»", 'чем "', 'разница "', 'а и "', 'compare the "'])
def test_marks_of_quotations_alone_take_no_time(unit: str) -> None:
    started_at = process_time()
    parts_of((unit * QUESTION)[:QUESTION])
    assert process_time() - started_at < MOST_SECONDS


@pytest.mark.parametrize("unit", ["\n", " \n", "\n\t", " "])
def test_blank_lines_of_a_model_take_no_time(unit: str) -> None:
    started_at = process_time()
    assert _END.search(f"Да.{unit * QUESTION}") is None
    assert process_time() - started_at < MOST_SECONDS


@pytest.mark.parametrize("mark", ["\u0301\u0316", "\u0301\u200b\u0316"], ids=["alone", "with invisible characters"])
def test_combining_marks_take_no_time(mark: str) -> None:
    started_at = process_time()
    stacked = clean(f"Код Е20{mark * 40_000}, фильтр")
    assert process_time() - started_at < MOST_SECONDS
    assert stacked.startswith("Код Е20")
    assert stacked.endswith(", фильтр")


@pytest.mark.parametrize(("opening", "closing"), ["()", "[]", "«»", '""'])
def test_marks_around_a_word_take_no_time(opening: str, closing: str) -> None:
    marks = QUESTION // 2 - 6
    started_at = process_time()
    layout(f"{opening * marks}ghbdtn{closing * marks}")
    assert process_time() - started_at < MOST_SECONDS


def test_the_labels_of_a_host_take_no_time() -> None:
    started_at = process_time()
    assert not leads_to(f"https://{'a.' * 20_000}b", frozenset({"shop.example"}))
    assert process_time() - started_at < MOST_SECONDS


def test_few_words_are_compared_with_the_vocabulary(monkeypatch: pytest.MonkeyPatch) -> None:
    vocabulary = Vocabulary({"холодильник": 1})
    compared: list[str] = []

    def near(word: str, _errors: int) -> tuple[()]:
        compared.append(word)
        return ()

    monkeypatch.setattr(vocabulary, "near", near)
    spelling(" ".join(f"фывпрл{''.join(letters)}" for letters in product("джщ", repeat=5)), vocabulary)
    assert 1 < len(compared) <= 20


def test_a_run_of_letters_is_many_words() -> None:
    for run in ("я" * 100_000, "1." * 50_000, "1" * 100_000):
        found = all_words(run)
        assert max(map(len, found)) < 250
        assert sum(map(len, found)) > 90_000
    assert transliterations("shch" * 500) == ()


@pytest.mark.parametrize("header", ["From", "Content-Type", "Content-Disposition", "Content-Transfer-Encoding"])
@pytest.mark.parametrize("unit", ['"', ",", ";", "\\"])
def test_a_long_header_of_an_email_takes_no_time(header: str, unit: str) -> None:
    reference = mail.message_id(Reference("acme", "a" * 24, "b" * 32), "msg_1", "shop.example")
    fields = {"From": "anna@example.com", "References": reference, "Content-Type": "text/plain; a=b"}
    fields[header] = f"{fields.get(header, 'a; b=')}{unit * 40_000}"
    raw = "".join(f"{name}: {value}\r\n" for name, value in fields.items()) + "\r\nThanks."
    started_at = process_time()
    read(raw.encode(), "help@shop.example")
    assert process_time() - started_at < MOST_SECONDS


@pytest.mark.parametrize("reference", ["a@b", mail.message_id(Reference("acme", "a" * 24, "b" * 32), "m", "b")])
@pytest.mark.parametrize(("depth", "line"), [(300, "-"), (1, "--b0\r\nContent-Type: message/rfc822\r\n")])
def test_parts_of_an_email_take_no_time(reference: str, depth: int, line: str) -> None:
    kind = "Content-Type: multipart/mixed; boundary=b{0}\r\n\r\n--b{0}\r\n"
    head = f"From: anna@example.com\r\nReferences: {reference}\r\n"
    raw = head + "".join(map(kind.format, range(depth))) + "\r\n\r\n" + f"{line}\r\n" * (400_000 // (len(line) + 2))
    started_at = process_time()
    read(raw.encode(), "help@shop.example")
    assert process_time() - started_at < MOST_SECONDS


@pytest.mark.parametrize("unit", [" a*0=1;", "(", ";"])
@pytest.mark.parametrize("parts", [90, 990])
def test_the_headers_of_an_email_s_parts_take_no_time(unit: str, parts: int) -> None:
    reference = mail.message_id(Reference("acme", "a" * 24, "b" * 32), "msg_1", "shop.example")
    head = f"From: anna@example.com\r\nReferences: {reference}\r\nContent-Type: multipart/mixed; boundary=x\r\n\r\n"
    part = f"--x\r\nContent-Type: text/plain;{unit * (420 // len(unit))}\r\n\r\na\r\n"
    started_at = process_time()
    read((head + part * parts).encode(), "help@shop.example")
    assert process_time() - started_at < MOST_SECONDS


@pytest.mark.parametrize(("charset", "unit"), [("punycode", "a"), ("utf-8", "\n"), ("utf-8", " \n")])
def test_the_text_of_an_email_takes_no_time(charset: str, unit: str) -> None:
    reference = mail.message_id(Reference("acme", "a" * 24, "b" * 32), "msg_1", "shop.example")
    head = f"From: anna@example.com\r\nReferences: {reference}\r\nContent-Type: text/plain; charset={charset}\r\n\r\n"
    started_at = process_time()
    read((head + unit * MAX_BYTES).encode(), "help@shop.example")
    assert process_time() - started_at < MOST_SECONDS


def test_the_attributes_of_an_email_take_little_time() -> None:
    reference = mail.message_id(Reference("acme", "a" * 24, "b" * 32), "msg_1", "shop.example")
    head = f"From: anna@example.com\r\nReferences: {reference}\r\nContent-Type: text/html\r\n\r\n<p>Thanks.</p><p "
    attributes = " ".join(f"a{number:x}" for number in range(70_000))
    started_at = process_time()
    answer = read(f"{head}{attributes}>".encode(), "help@shop.example")
    assert process_time() - started_at < 3 * MOST_SECONDS
    assert answer.text.startswith("Thanks.")


def test_an_article_is_rendered_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installation = Settings(data_dir=tmp_path)
    Registry(installation).add(ATTACKER)
    rendered: list[str] = []
    render = pages._MARKDOWN.render

    def counted(markdown: str) -> str:
        rendered.append(markdown)
        return str(render(markdown))

    monkeypatch.setattr(pages._MARKDOWN, "render", counted)
    token = issue(installation, ATTACKER, scopes=ALL_SCOPES, subject="anna", ttl_seconds=600)
    document = {"doc_id": "table", "title": "Table", "text": f"|a|b|\n|-|-|\n{'|x|y|' * 100}\n"}
    with in_force(installation), TestClient(app.create_app(installation)) as client:
        with acting_as(Tenant(ATTACKER, "admin")):
            sites.add("help", [SHOP], key="site_help")
        headers = {"Authorization": f"Bearer {token}"}
        assert client.post("/ingest/run", json={"documents": [document]}, headers=headers).is_success
        for _ in range(3):
            assert "<td>" in client.get("/help/site_help/table").text
    assert len(rendered) == 1
