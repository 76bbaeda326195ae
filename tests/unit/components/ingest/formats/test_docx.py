"""Word files: headings, lists, tables, links and notes, without deleted or hidden text."""

import re
import zipfile
from io import BytesIO

import pytest
from docx.document import Document
from docx.enum.style import WD_STYLE_TYPE
from docx.opc.constants import RELATIONSHIP_TYPE
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls

from components.ingest import formats
from tests.unit.components.ingest.formats.made import word


def insert(document: Document, xml: str) -> None:
    """Append an element to the body, as other programs write it."""
    element = parse_xml(xml.replace(">", f" {nsdecls('w', 'r')}>", 1))
    document.element.body.insert(len(document.element.body) - 1, element)


def test_headings_paragraphs_and_properties() -> None:
    def build(document: Document) -> None:
        document.add_heading("Возврат", 1)
        document.add_paragraph("Товар 2*2 можно вернуть.")
        document.add_heading("Сроки", 2)
        document.add_paragraph("# 14 дней\nИ ни днём больше")

    parsed = formats.read("a.docx", word(build, title="Правила возврата"))
    assert parsed.text == "# Возврат\n\nТовар 2\\*2 можно вернуть.\n\n## Сроки\n\n\\# 14 дней  \nИ ни днём больше"
    assert (parsed.title, parsed.flags) == ("Правила возврата", ())
    assert parsed.meta == {"author": "Анна Петрова", "updated_at": "2025-03-04"}


def test_a_style_based_on_a_heading_is_a_heading() -> None:
    def build(document: Document) -> None:
        own = document.styles.add_style("Раздел компании", WD_STYLE_TYPE.PARAGRAPH)
        own.base_style = document.styles["Heading 3"]
        document.add_paragraph("Сроки", "Раздел компании")
        document.add_paragraph("x")

    assert formats.read("a.docx", word(build)).text == "### Сроки\n\nx"


def test_bold_lines_are_headings_where_no_style_is() -> None:
    def build(document: Document) -> None:
        for text in ("Сроки возврата", "Это важно.", "Оплата"):
            document.add_paragraph().add_run(text).bold = True
            document.add_paragraph("x")

    assert formats.read("a.docx", word(build)).text == "## Сроки возврата\n\nx\n\nЭто важно.\n\nx\n\n## Оплата\n\nx"


def test_lists() -> None:
    def build(document: Document) -> None:
        for text, style in (("a", "List Bullet"), ("b", "List Bullet 2"), ("c", "List Number"), ("d", "List Number")):
            document.add_paragraph(text, style)
        document.add_paragraph("e")

    assert formats.read("a.docx", word(build)).text == "- a\n- b\n1. c\n2. d\n\ne"


def test_the_numbers_of_clauses_are_text() -> None:
    levels = "".join(
        f'<w:lvl w:ilvl="{at}"><w:start w:val="1"/><w:numFmt w:val="{form}"/><w:lvlText w:val="{text}"/></w:lvl>'
        for at, (form, text) in enumerate([("decimal", "%1"), ("decimal", "%1.%2"), ("russianLower", "%3)")])
    )

    def build(document: Document) -> None:
        numbering = document.part.numbering_part.element
        numbering.insert(0, parse_xml(f'<w:abstractNum {nsdecls("w")} w:abstractNumId="90">{levels}</w:abstractNum>'))
        numbering.append(parse_xml(f'<w:num {nsdecls("w")} w:numId="90"><w:abstractNumId w:val="90"/></w:num>'))
        for text, level in (("Общее", 0), ("Срок", 1), ("Место", 1), ("дом", 2), ("Прочее", 0), ("Суд", 1)):
            paragraph = document.add_paragraph(text)
            paragraph._p.get_or_add_pPr().append(
                parse_xml(f'<w:numPr {nsdecls("w")}><w:ilvl w:val="{level}"/><w:numId w:val="90"/></w:numPr>')
            )

    expected = "1 Общее\n\n1.1 Срок\n\n1.2 Место\n\n      а) дом\n\n2 Прочее\n\n2.1 Суд"
    assert re.sub(r"\n+", "\n\n", formats.read("a.docx", word(build)).text) == expected


def test_tables_with_merged_cells() -> None:
    def build(document: Document) -> None:
        table = document.add_table(4, 3)
        for row, cells in zip(table.rows, ["abc", "123", "456", "789"], strict=True):
            for cell, text in zip(row.cells, cells, strict=True):
                cell.text = text
        table.cell(1, 0).merge(table.cell(2, 0))
        table.cell(3, 1).merge(table.cell(3, 2))
        document.add_table(1, 1).cell(0, 0).text = "Рамка"

    text = formats.read("a.docx", word(build)).text
    rows = ["| a | b | c |", "| --- | --- | --- |", "| 1 4 | 2 | 3 |", "| 1 4 | 5 | 6 |", "| 7 | 8 9 |  |"]
    assert text == "\n".join(rows) + "\n\nРамка"


def test_only_external_links_are_kept() -> None:
    def build(document: Document) -> None:
        for address in ("https://acme.ru/a", "file:///etc/passwd"):
            ident = document.part.relate_to(address, RELATIONSHIP_TYPE.HYPERLINK, is_external=True)
            insert(document, f'<w:p><w:hyperlink r:id="{ident}"><w:r><w:t>сюда</w:t></w:r></w:hyperlink></w:p>')

    assert formats.read("a.docx", word(build)).text == "[сюда](https://acme.ru/a)\n\nсюда"


def test_what_was_inserted_stays_and_what_was_deleted_does_not() -> None:
    def build(document: Document) -> None:
        insert(
            document,
            "<w:p><w:ins><w:r><w:t>новое</w:t></w:r></w:ins><w:del><w:r><w:delText>старое</w:delText></w:r></w:del></w:p>",
        )
        insert(document, "<w:sdt><w:sdtContent><w:p><w:r><w:t>поле</w:t></w:r></w:p></w:sdtContent></w:sdt>")

    assert formats.read("a.docx", word(build)).text == "новое\n\nполе"


@pytest.mark.parametrize("hiding", ["<w:vanish/>", '<w:sz w:val="2"/>'])
def test_hidden_text_is_dropped_and_flagged(hiding: str) -> None:
    def build(document: Document) -> None:
        insert(document, f"<w:p><w:r><w:t>видно</w:t></w:r><w:r><w:rPr>{hiding}</w:rPr><w:t>Ignore</w:t></w:r></w:p>")

    parsed = formats.read("a.docx", word(build))
    assert (parsed.text, parsed.flags) == ("видно", ("hidden_text",))


def test_a_text_box_is_read_once() -> None:
    box = "<w:txbxContent><w:p><w:r><w:t>в рамке</w:t></w:r></w:p></w:txbxContent>"
    namespace = 'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'

    def build(document: Document) -> None:
        insert(
            document,
            f"<w:p><w:r><w:t>a</w:t></w:r><w:r><mc:AlternateContent {namespace}><mc:Choice>{box}</mc:Choice>"
            f"<mc:Fallback>{box}</mc:Fallback></mc:AlternateContent></w:r></w:p>",
        )

    assert formats.read("a.docx", word(build)).text == "a\n\nв рамке"


def test_a_note_is_inserted_at_its_reference() -> None:
    def build(document: Document) -> None:
        insert(
            document,
            '<w:p><w:r><w:t>Срок</w:t></w:r><w:r><w:footnoteReference w:id="2"/></w:r><w:r><w:t>.</w:t></w:r></w:p>',
        )

    source = zipfile.ZipFile(BytesIO(word(build)))
    note = '<w:footnote w:id="2"><w:p><w:r><w:t>рабочий</w:t></w:r></w:p></w:footnote>'
    notes = f"<w:footnotes {nsdecls('w')}>{note}</w:footnotes>"
    relation = f'<Relationship Id="rId99" Type="{RELATIONSHIP_TYPE.FOOTNOTES}" Target="footnotes.xml"/></Relationships>'
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w") as target:
        for name in source.namelist():
            data = source.read(name).decode("utf-8", "surrogateescape")
            if name == "word/_rels/document.xml.rels":
                data = data.replace("</Relationships>", relation)
            target.writestr(name, data.encode("utf-8", "surrogateescape"))
        target.writestr("word/footnotes.xml", notes)
    assert formats.read("a.docx", buffer.getvalue()).text == "Срок (рабочий)."
