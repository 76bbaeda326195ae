"""Hypothesis strategies for several packages of tests."""

from hypothesis import strategies as st

_ODD = "\u00ad\u200b\ufeff\u00a0\u2028\u0085\r\n\t\x00\x1c\u0306\u0308\u0301İßǅﬁ№«»—…🙂"

characters = st.one_of(
    st.sampled_from("абвгдежзийклмнопрстуфхцчшщъыьэюяёАВЕКМНОРСТУХЁЙ"),
    st.sampled_from("abcdefghijklmnopqrstuvwxyzABEKMHOPCTYX"),
    st.sampled_from("0123456789 \n.,;:!?'\"()[]{}<>|#*`~-_/\\@&$^%="),
    st.sampled_from(_ODD),
    st.characters(exclude_categories=["Cs"]),
)

texts = st.text(characters, max_size=120)
"""Difficult text: two alphabets, markup, invisible and combining characters."""

lines = st.lists(
    st.one_of(
        st.sampled_from(
            ["- пункт. И ещё.", "1. Первый шаг", "# Заголовок", "| a | b |", "```", "~~~ py", "> цитата", ""]
        ),
        st.sampled_from(["Код E20 — слив. Проверьте фильтр, т. е. крышку!", "The door is locked. Wait 2 min."]),
        texts,
    ),
    max_size=12,
).map("\n".join)
"""Markdown-like documents of a few lines."""
