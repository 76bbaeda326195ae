"""Headings as a path, and what captions say of the text below them: that it resolves a problem, or leads elsewhere."""

import re

HEADING_SEPARATOR = " › "
"""Between the headings that a passage stands under, outermost first."""

_RESOLUTION = re.compile(
    r"(?:ответ|решение(?: проблемы)?|(?:способ\w* )?(?:устранени|исправлени|решени)\w*|что делать|как исправить|"
    r"answers?|(?:re)?solution|resolving the problem|how to (?:fix|resolve)(?: it| this)?|fix|"
    r"workarounds?(?: and mitigations)?|remediations?(?: ?/ ?fix(?:es)?)?|"
    r"what to do)\W*",
    re.IGNORECASE,
)
_CONTENTS = re.compile(
    r"(?:в этой (?:статье|инструкции)|на этой странице|содержание|оглавление|"
    r"(?:in|on) this (?:article|page|guide)(?:, (?:you(?:'ll)? )?(?:will )?learn\b.{0,20})?|(?:table of )?contents)"
    r"(?:[^.!?]{0,40}:)?",
    re.IGNORECASE,
)
_STATEMENT = re.compile(
    r"(?:вопрос|(?:описание )?проблем[аы]|симптом(?:ы)?|условия возникновения|"
    r"question|problem(?: ?\(abstract\)| description| statement)?|symptoms?|environment|issue)\W*",
    re.IGNORECASE,
)
_ABSTRACT = re.compile(r"(?:кратко|аннотация|введение|обзор|abstract|summary|overview|introduction)\W*", re.IGNORECASE)
_CAUSE = re.compile(
    r"(?:(?:возможн\w+ )?причин[аы](?: (?:ошибки|проблемы))?|(?:possible |root )?causes?)\W*", re.IGNORECASE
)
_ELSEWHERE = re.compile(
    r"(?:см(?:отри(?:те)?|\.)? также|читайте также|что дальше|полезные ссылки|связанные (?:статьи|материалы|разделы)|"
    r"дополнительн\w+ (?:материалы|информация|ссылки|ресурсы|сведения)|see also|read (?:also|more)|"
    r"additional resources|"
    r"если (?:ничего не (?:получилось|помогло)|проблема (?:осталась|не (?:решена|решилась|устранена)))|"
    r"related (?:articles|information|links|topics)|next steps|further reading|useful links|change history|"
    r"references|acknowledge?ments?|cross reference information|get notified about future [\w ]+|"
    r"product alias/synonym|disclaimer)\W*",
    re.IGNORECASE,
)
_EXAMPLE = re.compile(r"(?:пример(?:ы|а)?|(?:example|sample)s?)\b[^.!?]{0,60}", re.IGNORECASE)
_STEP = re.compile(r"(?:(?:шаг|этап|step|stage) )?(\d{1,2})[.):] \w", re.IGNORECASE)
_PREPARATION = re.compile(
    r"(?:\d+[.)] ?)?(?:подготовительные (?:шаги|действия)|перед (?:началом|началом работы|тем,? как начать)|"
    r"подготовка(?: к работе)?|предварительные (?:требования|условия|шаги)|требования|необходимые условия|"
    r"before you (?:begin|start)|prerequisites|requirements|preparation)\W*",
    re.IGNORECASE,
)


def innermost(heading: str) -> str:
    """The last heading of a path."""
    return heading.rpartition(HEADING_SEPARATOR)[2]


def is_question(caption: str) -> bool:
    """Whether a caption asks: what stands below it is the answer."""
    return caption.rstrip(": ").endswith("?")


def is_resolution(caption: str) -> bool:
    """Whether a caption announces the solution of the problem, or the answer to the question, stated before it."""
    return bool(_RESOLUTION.fullmatch(caption.strip().lstrip("# ")))


def is_statement(caption: str) -> bool:
    """Whether a caption only states the problem, or the question."""
    return bool(_STATEMENT.fullmatch(caption.strip()))


def is_abstract(caption: str) -> bool:
    """Whether a caption opens what the text below says again at length."""
    return bool(_ABSTRACT.fullmatch(caption.strip()))


def is_cause(caption: str) -> bool:
    """Whether a caption announces why a problem arises."""
    return bool(_CAUSE.fullmatch(caption.strip()))


def is_contents(caption: str) -> bool:
    """Whether a line opens a list of what the article is about."""
    return bool(_CONTENTS.fullmatch(caption.strip()))


def is_example(caption: str) -> bool:
    """Whether a caption announces what something looks like: the output of a command, a file."""
    return bool(_EXAMPLE.fullmatch(caption.strip().lstrip("# ")))


def is_preparation(caption: str) -> bool:
    """Whether a caption stands over what is needed before the thing that an article is about."""
    return bool(_PREPARATION.fullmatch(caption.strip()))


def is_later_step(caption: str) -> bool:
    """Whether a caption is numbered as a step that others come before: "2. Connect the disk"."""
    number = _STEP.match(caption.strip())
    return number is not None and int(number[1]) > 1


def leads_elsewhere(caption: str) -> bool:
    """Whether a caption stands over links and not over an answer."""
    return bool(_ELSEWHERE.fullmatch(caption.strip()))
