"""Text in the encodings that Russian files come in."""

import pytest

from components.ingest.formats.encoding import decoded
from tenants.core.errors import Invalid

TEXT = "Ошибка E20 означает, что вода не сливается.\nВыньте вилку из розетки и прочистите фильтр: «Слив», 5 минут."


def test_russian_is_read_in_every_encoding() -> None:
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "cp1251", "koi8-r"):
        text = TEXT if encoding != "koi8-r" else TEXT.translate(str.maketrans("«»", '""'))
        assert decoded(text.encode(encoding)) == text
        assert decoded(text.upper().encode(encoding)) == text.upper()


@pytest.mark.parametrize(
    "data",
    [
        b"\x89PNG\r\n\x1a\n\x00\x00",
        "Liberté, égalité".encode("cp1252"),
        "日本語の説明書".encode("shift-jis"),
        b"\xff\xfe\x00",
        b"a\x00b",
    ],
)
def test_undecodable_files_are_refused(data: bytes) -> None:
    with pytest.raises(Invalid, match="file_undecodable"):
        decoded(data)
