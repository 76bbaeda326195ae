"""PDF files: words with their places by pdfium, made into paragraphs, headings, lists and tables."""

from io import BytesIO

import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_c

from components.ingest.formats import properties
from components.ingest.formats.limits import MAX_PAGES
from components.ingest.formats.parsed import FileFlag, Parsed
from components.ingest.formats.pdf_blocks import Content, document_text
from components.ingest.formats.pdf_lines import lines_of
from components.ingest.formats.pdf_page import read_page
from tenants.errors import Invalid, TooLarge


def read(data: bytes) -> Parsed:
    """The text of all pages. Pages that are only pictures are listed in `scanned_pages` and flagged.

    Codes: `scanned_only` when no page has text, `text_missing`, `file_encrypted`, `file_damaged`, `pages_too_many`.
    """
    try:
        document = pdfium.PdfDocument(BytesIO(data))
    except pdfium.PdfiumError as failed:
        encrypted = failed.err_code in {pdfium_c.FPDF_ERR_PASSWORD, pdfium_c.FPDF_ERR_SECURITY}
        raise Invalid("file_encrypted" if encrypted else "file_damaged") from failed
    try:
        if len(document) > MAX_PAGES:
            raise TooLarge("pages_too_many", limit=MAX_PAGES)
        scanned, hidden = [], False
        contents: list[Content] = []
        for at in range(len(document)):
            page = read_page(document, at)
            # Words by the million would not fit; lines do.
            contents.append(Content(page.number, page.height, tuple(lines_of(page))))
            scanned += [page.number] if page.scanned else []
            hidden = hidden or page.hidden
        declared = document.get_metadata_dict()
    except pdfium.PdfiumError as failed:
        raise Invalid("file_damaged") from failed
    finally:
        document.close()
    if not any(page.lines for page in contents):
        raise Invalid("scanned_only" if scanned else "text_missing")
    title, meta = properties.described(*(declared.get(key) for key in ("Title", "Author", "ModDate", "CreationDate")))
    if scanned:
        meta["scanned_pages"] = scanned
    raised: dict[FileFlag, bool] = {"scanned_pages": bool(scanned), "hidden_text": hidden}
    flags = tuple(flag for flag, holds in raised.items() if holds)
    return Parsed(title, document_text(contents), meta=meta, flags=flags, pages=len(contents))
