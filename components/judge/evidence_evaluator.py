"""Before anything is generated: is the evidence enough to answer?"""

from collections.abc import Mapping
from typing import Any

from haystack import Document, component

from components.judge.grader import lacks_codes
from components.judge.terms import read_query
from components.passages import to_passage
from components.turn import PASSES, Gate, Quality, Verdict


@component
class RetrievalEvaluator:
    """Send evidence on to the answerer, ask for another retrieval pass, or refuse.

    Another pass is made while the budget lasts, if something is missing that is worth searching for and the last pass
    found new documents. A hopeless question is refused at once.

    :param threshold: minimum adequacy to answer: the relevance gate.
    :param worth_retrying: minimum adequacy for another pass.
    :param passes: retrieval passes by quality; qualities left out keep their default.

    ```python
    RetrievalEvaluator(threshold=0.4).run(query="warranty", documents=documents, adequacy=0.7, missing=[])
    ```
    """

    def __init__(
        self, threshold: float = 0.45, worth_retrying: float = 0.25, passes: Mapping[Quality, int] | None = None
    ) -> None:
        self.threshold = threshold
        self.worth_retrying = worth_retrying
        self.passes = checked_passes(passes)

    @component.output_types(enough=list[Document], retry=list[str], refuse=Verdict, gate=Gate)
    def run(
        self,
        query: str,
        documents: list[Document],
        adequacy: float,
        missing: list[str],
        attempt: int = 1,
        grew: bool = True,
        quality: Quality = "balanced",
    ) -> dict[str, Any]:
        """Return exactly one of `enough`, `retry` and `refuse`, and the `gate`.

        :param documents: the accepted evidence, best first.
        :param adequacy: how well the evidence answers, 0..1.
        :param missing: what to search for in another pass.
        :param attempt: the number of this pass, from 1.
        :param grew: whether this pass found documents that no earlier pass had found.
        """
        gate = Gate("relevance", adequacy >= self.threshold and bool(documents), adequacy, self.threshold)
        if gate.passed:
            return {"enough": documents, "gate": gate}
        if missing and grew and attempt < self.passes[quality] and adequacy >= self.worth_retrying:
            return {"retry": missing, "gate": gate}
        absent = lacks_codes(read_query(query), [to_passage(document) for document in documents])
        return {"refuse": Verdict("human", ("code_not_found" if absent else "no_evidence",), (gate,)), "gate": gate}


def checked_passes(passes: Mapping[Quality, int] | None) -> dict[Quality, int]:
    """Return the passes by quality, defaults included.

    :raises ValueError: a quality is unknown.
    """
    if unknown := set(passes or {}) - set(PASSES):
        raise ValueError(f"no such quality: {', '.join(sorted(unknown))}; there are {', '.join(PASSES)}")
    return {**PASSES, **(passes or {})}
