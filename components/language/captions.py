"""What captions say about the text below them: that it resolves a problem, or that it only leads elsewhere."""

import re

_RESOLUTION = re.compile(
    r"(?:ответ|решение(?: проблемы)?|(?:способ\w* )?(?:устранени|исправлени|решени)\w*|что делать|как исправить|"
    r"answer|(?:re)?solution|resolving the problem|how to (?:fix|resolve)(?: it| this)?|fix|workarounds?|remediation|"
    r"what to do)\W*",
    re.IGNORECASE,
)
_CONTENTS = re.compile(
    r"(?:в этой (?:статье|инструкции)|на этой странице|содержание|оглавление|"
    r"(?:in|on) this (?:article|page|guide)(?:, (?:you(?:'ll)? )?(?:will )?learn\b.{0,20})?|(?:table of )?contents)"
    r"(?:[^.!?]{0,40}:)?",
    re.IGNORECASE,
)
_ELSEWHERE = re.compile(
    r"(?:см(?:отри(?:те)?|\.)? также|читайте также|что дальше|полезные ссылки|связанные (?:статьи|материалы|разделы)|"
    r"дополнительн\w+ (?:материалы|информация|ссылки)|see also|read (?:also|more)|"
    r"related (?:articles|information|links|topics)|next steps|further reading|useful links|change history|"
    r"product alias/synonym|disclaimer)\W*",
    re.IGNORECASE,
)


def is_resolution(caption: str) -> bool:
    """Whether a caption announces the solution of the problem, or the answer to the question, stated before it."""
    return bool(_RESOLUTION.fullmatch(caption.strip()))


def is_contents(caption: str) -> bool:
    """Whether a line opens a list of what the article is about."""
    return bool(_CONTENTS.fullmatch(caption.strip()))


def leads_elsewhere(caption: str) -> bool:
    """Whether a caption stands over links and not over an answer."""
    return bool(_ELSEWHERE.fullmatch(caption.strip()))
