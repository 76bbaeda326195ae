"""E-mails as mail programs write them: the answer without what it quotes; nothing in an e-mail raises."""

from email.message import EmailMessage

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.language.texts import text
from pipelines.ask.chats.incoming import read, without_quotes
from tenants.chats import mail
from tenants.chats.mail import Reference

NAMED = mail.message_id(Reference("acme", "a" * 24, "b" * 32), "msg_1", "shop.ru")
ABOVE = text("mail.above", "ru")


def test_a_quotation_is_cut_off() -> None:
    for quoted in (
        f"> {ABOVE}\n>\n> Здравствуйте!",
        f"24 нояб. 2026 г., в 10:00, Волна <help@shop.ru> написал(а):\n\n> {ABOVE}\n> Здравствуйте!",
        "On Tue, 24 Nov 2026 at 10:00, Shop <help@shop.ru> wrote:\n> Hello,",
        "On Tue, 24 Nov 2026 at 10:00, The Shop With A Long Name\n<help@shop.ru> wrote:\n\n> Hello,",
        "-----Original Message-----\nFrom: Shop\nSubject: Reply",
        "________________________________\nОт: Волна <help@shop.ru>\nТема: Ответ",
        "От: Волна <help@shop.ru>\nОтправлено: 24 ноября\n\nЗдравствуйте!",
    ):
        assert without_quotes(f"Спасибо!\r\nКогда привезут?\n\n{quoted}") == "Спасибо!\nКогда привезут?"


@pytest.mark.parametrize("whole", ["Он написал: завтра", "Мой адрес: Садовая, 5", "2 > 1, верно?", "От: кого?"])
def test_words_of_an_answer_stay(whole: str) -> None:
    assert without_quotes(whole) == whole


def test_html_alone_is_read_without_its_quotation() -> None:
    message = EmailMessage()
    message["From"], message["References"] = "anna@example.ru", f"<other@mail> {NAMED}"
    message.set_content(
        "<html><head><style>p {}</style></head><body><div>Да,<br>подходит.</div>"
        '<div class="gmail_quote">Вт, Волна &lt;help@shop.ru&gt;:<br>'
        "<blockquote>Здравствуйте!</blockquote></div></body></html>",
        subtype="html",
    )
    message.add_attachment(b"%PDF", maintype="application", subtype="pdf", filename="check.pdf")
    found = read(message.as_bytes(), "help@shop.ru")
    assert (found.kind, found.text, found.attachments) == ("answer", "Да,\nподходит.", 1)
    assert found.references == (Reference("acme", "a" * 24, "b" * 32),)


@given(st.binary(max_size=300), st.text(max_size=80))
def test_no_email_raises(raw: bytes, name: str) -> None:
    headers = f"From: {name}\nIn-Reply-To: {NAMED}\nContent-Type: text/html; charset={name}\n\n"
    assert read(headers.encode("utf-8", "replace") + raw, "help@shop.ru").kind
    assert read(raw, "help@shop.ru").kind in ("foreign", "unreadable", "bounce")


@given(st.text(min_size=1, max_size=60), st.text("0123456789abcdef", min_size=24, max_size=24))
def test_a_reference_names_its_tenant_and_chat(tenant_id: str, chat_id: str) -> None:
    reference = Reference(tenant_id, chat_id, "0" * 32)
    try:
        named = mail.message_id(reference, "msg_2", "shop.ru")
    except UnicodeEncodeError:
        return
    assert set(mail.references(named)) <= {reference}
    assert not reference.names("1" * 32)
    assert not reference.names(None)
