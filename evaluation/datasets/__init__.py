"""Data sets: questions with the known properties of their answers, and the knowledge bases for them."""

DATA_SETS = (
    "answers",
    "fixture",
    "codes",
    "dialogues",
    "vkcloud",
    "xquad",
    "techqa",
    "wixqa",
)
