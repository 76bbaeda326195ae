"""The fit of the judge: evidence to log-odds, and those to a probability that holds for a vendor never seen."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress

import numpy as np

from components.judge.calibration import Line
from components.judge.evidence import COSINE, EVIDENCE, REQUIRED, measure, similarity
from components.judge.relevance import Weights, design, log_odds
from evaluation.fit.questions import GradedQuestion
from evaluation.metrics.calibration import Booleans, Numbers, logistic

RIDGE = 330.0
"""Strong: what distinguishes vendors is small beside what they have in common. Chosen between the two vendors."""
PRIOR, BARE_PRIOR = 0.28, 0.6
"""Share of questions whose best candidate answers. It is 0.41 with one vendor and 0.17 with the other, and nobody knows
that of a new tenant, so that every vendor is weighted to the same share, about the middle of them. XQuAD
is taken as it is. `opora evaluate calibrate` puts it right for a tenant."""
_FOLDS = 5
_IDENTITY = Line(1.0, 0.0)


@dataclass(frozen=True, slots=True)
class VendorEvidence:
    """A vendor's questions: the evidence for each candidate, which answer, and the folds of the questions."""

    values: tuple[Numbers, ...]
    answers: tuple[Booleans, ...]
    folds: tuple[int, ...]

    def part(self, selected: Sequence[bool]) -> "VendorEvidence":
        """Some of the questions."""
        return VendorEvidence(
            tuple(compress(self.values, selected)),
            tuple(compress(self.answers, selected)),
            tuple(compress(self.folds, selected)),
        )


def vendor_evidence(questions: Sequence[GradedQuestion], function_words: Mapping[str, float]) -> VendorEvidence:
    """The evidence of all candidates."""
    groups = {group: place % _FOLDS for place, group in enumerate(sorted({question.group for question in questions}))}
    return VendorEvidence(
        tuple(measure(question.query, question.passages, function_words) for question in questions),
        tuple(np.array(question.answers) for question in questions),
        tuple(groups[question.group] for question in questions),
    )


def fit_weights(vendors: Sequence[VendorEvidence], bare: Sequence[VendorEvidence], *, cosine: bool) -> Weights:
    """The weights for these vendors.

    :param bare: questions on passages without titles, for the line of those.
    :param cosine: whether the encoder's word counts.
    """
    weights = _fit_evidence(vendors, cosine=cosine)
    leads = [
        values[log_odds(weights, values).argmax()] - values.mean(axis=0)
        for vendor in vendors
        for values in vendor.values
    ]
    titled = [_best_candidates(vendor, _held_out_odds(vendor, cosine=cosine)) for vendor in vendors]
    best_bare = [_best_candidates(vendor, [log_odds(weights, values) for values in vendor.values]) for vendor in bare]
    return replace(
        weights, alone=np.mean(leads, axis=0), titled=_line(titled, PRIOR), bare=_line(best_bare, BARE_PRIOR)
    )


def probabilities(line: Line, weights: Weights, evidence: VendorEvidence) -> list[Numbers]:
    """The probability of every candidate."""
    return [np.array([line.probability(odds) for odds in log_odds(weights, values)]) for values in evidence.values]


def similarities(evidence: VendorEvidence, *, cosine: bool) -> list[Numbers]:
    """How similar every candidate is to its question.

    :param cosine: whether the encoder's word counts.
    """
    names = [name for name in EVIDENCE if cosine or name != COSINE]
    columns = [EVIDENCE.index(name) for name in names]
    return [
        np.array([similarity(dict(zip(names, row, strict=True))) for row in values[:, columns].tolist()])
        for values in evidence.values
    ]


def _line(best: Sequence[tuple[Numbers, Booleans]], prior: float) -> Line:
    """The line that fits best where each set counts the same and `prior` of its best candidates answer."""
    odds, labels = (np.concatenate(field) for field in zip(*best, strict=True))
    shares = np.concatenate(
        [np.where(right, prior / right.mean(), (1 - prior) / (1 - right.mean())) / len(right) for _, right in best]
    )
    slope, intercept = logistic(odds[:, None], labels, shares=shares * len(labels) / shares.sum())
    return Line(float(slope), float(intercept))


def _fit_evidence(vendors: Sequence[VendorEvidence], *, cosine: bool) -> Weights:
    columns = np.concatenate([design(values) for vendor in vendors for values in vendor.values])
    labels = np.concatenate([answers for vendor in vendors for answers in vendor.answers])
    used = np.repeat([cosine or name != COSINE for name in EVIDENCE], 3)
    # A long passage is no better by itself, only among others; what is required is so of each by itself.
    used[3 * EVIDENCE.index("length")] = False
    for name in REQUIRED:
        used[3 * EVIDENCE.index(name) + 1 : 3 * EVIDENCE.index(name) + 3] = False
    spread = columns.std(axis=0)
    used &= spread > 0
    *slopes, bias = logistic(columns[:, used] / spread[used], labels, ridge=RIDGE)
    evidence = np.zeros(len(used))
    evidence[used] = np.array(slopes) / spread[used]
    return Weights(evidence.reshape(len(EVIDENCE), 3), float(bias), np.zeros(len(EVIDENCE)), _IDENTITY, _IDENTITY)


def _held_out_odds(vendor: VendorEvidence, *, cosine: bool) -> list[Numbers]:
    """The log-odds of every candidate by a fit that saw no question of its fold."""
    odds: list[Numbers] = [np.zeros(0)] * len(vendor.values)
    for fold in set(vendor.folds):
        weights = _fit_evidence([vendor.part([row_fold != fold for row_fold in vendor.folds])], cosine=cosine)
        for place, (values, row_folds) in enumerate(zip(vendor.values, vendor.folds, strict=True)):
            if row_folds == fold:
                odds[place] = log_odds(weights, values)
    return odds


def _best_candidates(evidence: VendorEvidence, odds: Sequence[Numbers]) -> tuple[Numbers, Booleans]:
    """The log-odds of each question's best candidate, and whether it answers."""
    labels = np.array([answers[row_odds.argmax()] for row_odds, answers in zip(odds, evidence.answers, strict=True)])
    return np.array([row_odds.max() for row_odds in odds]), labels
