"""Cleaned text keeps everything for customers, and nothing that only an editor needs."""

import re

from hypothesis import given

from components.ingest.markdown import markdown_blocks, plain_blocks
from components.language.normalise import clean
from tests.generated import lines


def shown(text: str) -> str:
    return "\n\n".join(block.text for block in markdown_blocks(text))


def test_shown_text() -> None:
    for markdown, read in (
        ('См. [раздел *Оплата*](/pay "t") и ![снимок](a.png) ниже.', "См. раздел Оплата и снимок ниже."),
        (
            "**Важно:** _выньте_ вилку, snake_case и 2 * 3 * 4 остаются",
            "Важно: выньте вилку, snake_case и 2 * 3 * 4 остаются",
        ),
        ("Команда `rm *.log **x**` удалит", "Команда `rm *.log **x**` удалит"),
        ("Введите <IP-адрес>, <name> и <source>.", "Введите <IP-адрес>, <name> и <source>."),
        ("cd <JazzSM_HOME>/bin, <table name>, <code>", "cd <JazzSM_HOME>/bin, <table name>, <code>"),
        ("kubectl get <имя кластера> <your-id>", "kubectl get <имя кластера> <your-id>"),
        ("<message>сбой</message> и <code>get <ID></code>", "<message>сбой</message> и get <ID>"),
        ("<pre>cd <HOME>/bin\n./x &lt;id&gt;</pre>", "```\ncd <HOME>/bin\n./x <id>\n```"),
        ("|a|\n|-|\n|<ul><li>EAN13</li><li>UPC</li></ul>|", "| a |\n| --- |\n| EAN13 UPC |"),
        ("До<br>после <b>жирный</b> <!-- скрыто --> &amp; всё", "До\n\nпосле жирный & всё"),
        ("<https://example.com> и [](https://x)", "https://example.com и"),
        ("> **Совет**\n> вымойте фильтр", "Совет\n\nвымойте фильтр".replace("\n\n", " ")),
        ("текст\n\n---\n\n[ref]: http://x", "текст"),
        ("<!-- весь блок\nскрыт -->\n\nвидно", "видно"),
        ("<script>alert(1)</script>\n\nвидно", "видно"),
        ("<div class='x'>\nвнутри **жирно**\n</div>", "внутри жирно"),
        (r"5 \* 3 \_ 2", "5 * 3 _ 2"),
        ("Title: Guide\n\nText:\nbody", "Title: Guide\n\nText: body"),
    ):
        assert shown(markdown) == read


def test_icons_are_named_and_editor_marks_left_out() -> None:
    for markdown, read in (
        ("Нажмите ![Настройки](gear.svg) и сохраните.", "Нажмите Настройки и сохраните."),
        ('Click <img src="x.svg" alt="More Actions"> to go on.', "Click More Actions to go on."),
        ("Нажмите ![gear.svg](gear.svg), чтобы удалить.", "Нажмите, чтобы удалить."),
        ("Нажмите ![](gear.svg) .", "Нажмите."),
        ('Нажмите ![](gear.svg "Ещё") и ![](x.svg "inline") ниже.', "Нажмите Ещё и ниже."),
        ('Click <img src="x.svg" title="More"> to go on.', "Click More to go on."),
        ("Нажмите ![](gear.svg) для сети.", "Нажмите для сети."),
        ("![Снимок экрана](a.png)", ""),
        ("## Создайте сеть {#create}", "Создайте сеть"),
        ("Выполните `create {{ name }} <ID>` для  сети.", "Выполните `create {{ name }} <ID>` для сети."),
    ):
        assert shown(markdown) == read


def test_wrapped_lines_are_joined_and_ended_lines_stay() -> None:
    assert (
        shown("Первая строка обрывается\nна полуслове.\nВторая.") == "Первая строка обрывается на полуслове.\nВторая."
    )
    assert shown("Wix Payments\nImportant: read this") == "Wix Payments\n\nImportant: read this"


def test_lists_keep_numbers_nesting_and_code() -> None:
    (first, second) = markdown_blocks(
        "1. Выньте\n\n   ```sh\n   a  *b*\n   ```\n1. Вставьте\n   - до щелчка\n   - ровно"
    )
    assert first.text == "1. Выньте\n\n   ```sh\n   a  *b*\n   ```"
    assert second.text == "2. Вставьте\n   - до щелчка\n   - ровно"
    assert [block.text for block in markdown_blocks("7) семь\n8) восемь")] == ["7) семь", "8) восемь"]


def test_interrupted_procedure_keeps_its_numbers() -> None:
    for between, number in (
        ("```sh\na\n```", 3),
        ("coffee.yaml\n\n```yaml\na: 1\n```", 3),
        ("Linux\n\n```\na\n```\n\nWindows\n\n```\nb\n```", 3),
        ("|a|\n|-|\n|b|", 3),
        ("> Это займёт минуту.", 3),
        ("![Снимок](a.png)", 3),
        ("Windows", 1),
        ("Через консоль\n\nПодробнее — в справке.\n\n```\na\n```", 1),
        ("```sh\na\n```\n\nЧтобы удалить:", 1),
        ("- не шаг", 1),
        ("## Удаление", 1),
        ("##", 1),
    ):
        blocks = markdown_blocks(f"1. Выньте\n1. Промойте\n\n{between}\n\n1. Вставьте")
        assert blocks[-1].text == f"{number}. Вставьте"


def test_a_table_keeps_its_rows() -> None:
    (table,) = markdown_blocks("|Код|Что [делать](x)|\n|---|:-:|\n|E20|`a\\|b` **слить**|\n|E30||")
    assert table.kind == "table"
    assert table.head == "| Код | Что делать |\n| --- | --- |"
    assert table.text == f"{table.head}\n| E20 | `a\\|b` слить |\n| E30 |  |"


def test_code_is_kept_to_the_letter() -> None:
    code = "if (a < b) { /* **нет** */ }\n\n    <b>x</b>"
    assert shown(f"```c\n{code}\n```") == f"```c\n{code}\n```"
    assert shown("~~~\na ``` b\n~~~") == "~~~\na ``` b\n~~~"


def test_headings_know_their_level() -> None:
    blocks = markdown_blocks("# Ошибки **E10**\n\nДва\n---\n\nтекст")
    assert [(block.kind, block.level, block.text) for block in blocks] == [
        ("heading", 1, "Ошибки E10"),
        ("heading", 2, "Два"),
        ("prose", 0, "текст"),
    ]


def test_plain_text_is_left_alone() -> None:
    assert [block.text for block in plain_blocks("# не заголовок\n*a*\n\n \n  два")] == ["# не заголовок\n*a*", "  два"]


@given(lines)
def test_no_word_is_invented(text: str) -> None:
    text = clean(text)
    if "&" in text or "\\" in text:  # entities and escapes represent other characters
        return
    markdown = re.sub(r"[\W_\d]", "", text)
    position = 0
    for letter in re.sub(r"[\W_\d]", "", shown(text)):
        position = markdown.find(letter, position) + 1
        assert position > 0


def test_an_enormous_paragraph_is_read_in_pieces_without_loss() -> None:
    for marks in ("![", "*a_b", "<a ", "`a", "]("):
        (block,) = markdown_blocks("x" + marks * 2_000)
        assert len(block.text) > len(marks) * 1_000
    linked = "Слово " * 600 + "[ссылка из двух слов](https://example.com/a) и конец."
    (block,) = markdown_blocks(linked)
    assert block.text.endswith("ссылка из двух слов и конец.")


def test_text_that_is_indented_too_far_is_no_code() -> None:
    text = (
        "**Из копии**\n\n      Опция недоступна, если:\n\n      - нет копий;\n\n"
        "      ```console\n      restore --all\n      ```\n\nТовар вернут на склад."
    )
    assert [(block.kind, block.text) for block in markdown_blocks(text)] == [
        ("prose", "Из копии"),
        ("prose", "Опция недоступна, если:"),
        ("item", "- нет копий;"),
        ("code", "```console\nrestore --all\n```"),
        ("prose", "Товар вернут на склад."),
    ]


def test_prose_indented_ever_deeper_ends() -> None:
    text = "\n\n".join(f"{'    ' * depth}Строка номер раз, два и три." for depth in range(400))
    assert "Строка номер" in markdown_blocks(text)[0].text
