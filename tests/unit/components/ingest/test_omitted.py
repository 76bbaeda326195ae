"""Omitted parts of a document are listed, and none of them is in its chunks."""

import pytest

from components.ingest.cut import cut
from components.ingest.document import SourceDocument
from components.ingest.formats.parsed import Markup
from components.ingest.omitted import MAX_LENGTH, MOST, omitted
from components.ingest.pack import Sizes

TEXT = """# Фильтр {#filter}

<!-- Проверить до пятницы -->
Откройте <b>крышку</b> и нажмите ![значок](icon) рядом с <b>дверцей</b>.

![Снимок экрана](images/shot.png)

<script>track()</script>

Пишите `<b>` и `{{ имя }}` так:

```html
<i>код</i> <!-- остаётся -->
```
"""


def omitted_in(text: str, markup: Markup = "markdown") -> list[tuple[str, str, int]]:
    document = SourceDocument("a", "Фильтр", text, markup=markup)
    return [(one.why, one.text, one.times) for one in omitted(document) or ()]


def test_each_piece_is_named_with_why_and_is_in_no_chunk() -> None:
    pieces = omitted_in(TEXT)
    assert ("anchor", "{#filter}", 1) in pieces
    assert ("comment", "<!-- Проверить до пятницы -->", 1) in pieces
    assert ("picture", "![Снимок экрана](images/shot.png)", 1) in pieces
    assert ("script", "<script>track()</script>", 1) in pieces
    assert {("tag", "<b>", 2), ("tag", "</b>", 2)} <= set(pieces)
    # The name of an icon is read out, code is kept verbatim.
    text = " ".join(text for _, text, _ in pieces)
    for kept in ("значок", "<i>", "остаётся", "имя"):
        assert kept not in text
    chunks = " ".join(chunk.text for chunk in cut(SourceDocument("a", "Фильтр", TEXT), Sizes(100, 300, 20, 20)).chunks)
    assert not [text for why, text, _ in pieces if why != "tag" and text in chunks]


@pytest.mark.parametrize("many", [MOST * 3])
def test_a_list_is_bounded_and_so_is_what_is_read(many: int) -> None:
    text = "\n\n".join(f"Абзац <!-- {number} -->" for number in range(many))
    assert len(omitted_in(text)) == MOST
    assert len(omitted_in("Абзац <!-- " + "x" * 5_000 + " -->")[0][1]) < 500
    assert omitted(SourceDocument("a", "A", "x" * (MAX_LENGTH + 1))) is None
