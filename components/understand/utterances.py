"""The utterances that the intent classifier learns from, as written in `intent_utterances/<language>.yaml`."""

import hashlib
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from components.language.yaml_files import read_yaml

FOLDER = Path(__file__).parent / "intent_utterances"
_CHOICE = re.compile(r"\{([^{}]*)\}")
_MAX_VARIANTS = 16


@dataclass(frozen=True, slots=True)
class Utterance:
    """A labelled message for training. Messages of one `template` are variants and weigh 1 together."""

    text: str
    label: str
    template: str
    weight: float


def expand(template: str) -> list[str]:
    """Expand a template with `{a|b|c}` choices: all sentences, or `_MAX_VARIANTS` of them spread evenly."""
    pieces = _CHOICE.split(template)
    choices = [piece.split("|") if i % 2 else [piece] for i, piece in enumerate(pieces)]
    combined = ["".join(parts) for parts in itertools.product(*choices)]
    if len(combined) <= _MAX_VARIANTS:
        return combined
    # A step prime to the choices' sizes visits every part of every choice.
    return [
        combined[(i * len(combined)) // _MAX_VARIANTS + i % (len(combined) // _MAX_VARIANTS)]
        for i in range(_MAX_VARIANTS)
    ]


def utterances(folder: Path = FOLDER) -> Iterator[Utterance]:
    """Yield every utterance of every language, in file order."""
    for path in sorted(folder.glob("*.yaml")):
        for label, templates in read_yaml(path).items():
            for template in templates:
                variants = expand(str(template))
                for text in variants:
                    yield Utterance(text, str(label), str(template), 1 / len(variants))


def digest(folder: Path = FOLDER) -> str:
    """Return a fingerprint of the utterance files, kept in the model so that a stale one is noticed."""
    fingerprint = hashlib.sha256()
    for path in sorted(folder.glob("*.yaml")):
        fingerprint.update(path.read_bytes())
    return fingerprint.hexdigest()
