"""What an answer must be to be shown, however likely it is: of the kind that is asked for, about the matter itself, and
about the names in the question.
"""

from collections.abc import Iterator

from components.judge.answer_kind import answers_kind
from components.judge.named import names_in, rare_names
from components.judge.place import is_looked_up, shares_language, stands_beside
from components.language.question_kind import kind_of
from components.turn import Draft, Gate, Turn


def requirements(turn: Turn, draft: Draft) -> Iterator[Gate]:
    """Whether the draft holds what a question of its kind demands, and the rare names that it asks about.

    Not applicable to a follow-up question, whose search text is no question. What a tool says is held to no kind: it
    was asked for just that, and replies in fields, not in sentences.
    """
    if not draft.claims or turn.standalone_question:
        return
    query, cited = turn.query, [one.passage for one in draft.citations if one.origin == "primary"]
    kind = kind_of(query.search)
    looked_up = any(map(is_looked_up, cited))
    if query.weights and not looked_up and any(shares_language(query, passage) for passage in cited):
        head = "\n".join(f"{passage.title}\n{passage.heading}" for passage in cited)
        beside = all(stands_beside(passage, query) for passage in cited)
        answers = not beside and answers_kind(kind, query.search, draft.text, head, query.weights)
        yield Gate("kind", answers, float(answers), 1.0)
    if rare := rare_names(query):
        share = len(names_in(rare, cited, draft.text)) / len(rare)
        yield Gate("object", share >= 1, share, 1.0)
