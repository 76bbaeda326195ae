"""JUnit XML, which every build server reads: a suite for each set, a case for each demand."""

from collections.abc import Iterator, Sequence
from xml.etree import ElementTree as Xml

from components.language.texts import text
from evaluation.metrics.results import SetReport, missed
from evaluation.report.tables import ending, requirement
from evaluation.stored_runs import Run, SetRun

_CONTROL = {code: None for code in range(32) if code not in (9, 10, 13)}


def as_junit(run: Run, reports: Sequence[SetReport], locale: str) -> str:
    """Report cases with a required outcome or without an answer one by one, and the targets of a set as a whole.

    A question whose article was not found is no failure here: a benchmark is judged by its targets.
    """
    root = Xml.Element("testsuites", name="opora evaluate", timestamp=run.created_at.isoformat(timespec="seconds"))
    for report, set_run in zip(reports, run.sets, strict=True):
        cases = [*_demanded(set_run, locale), *_targets(report)]
        failed = sum(len(case) for case in cases)
        suite = Xml.SubElement(root, "testsuite", name=set_run.name, tests=str(len(cases)), failures=str(failed))
        suite.set("time", f"{set_run.seconds:.3f}")
        suite.extend(cases)
    for name in run.skipped:
        suite = Xml.SubElement(root, "testsuite", name=name, tests="1", skipped="1")
        Xml.SubElement(Xml.SubElement(suite, "testcase", name=name, classname=name), "skipped", message="absent")
    Xml.indent(root)
    return Xml.tostring(root, encoding="unicode", xml_declaration=True)


def _demanded(set_run: SetRun, locale: str) -> Iterator[Xml.Element]:
    for record in set_run.records:
        if record.case.demands or record.case.answerable is False:
            case = Xml.Element("testcase", name=_text(record.case.case_id), classname=set_run.name)
            case.set("time", f"{record.milliseconds / 1_000:.3f}")
            if missed(record):
                wanted, got = requirement(record, locale), ending(record, locale)
                message = text("evaluation.table.unmet", locale, wanted=wanted, got=got)
                fault = Xml.SubElement(case, "failure", message=_text(message))
                fault.text = _text(f"{record.case.question}\n\n{record.text}")
            yield case


def _targets(report: SetReport) -> Iterator[Xml.Element]:
    for judged in report.targets():
        name = f"{judged.target.figure} {judged.target.demand}"
        case = Xml.Element("testcase", name=name, classname=report.name)
        if not judged.met:
            Xml.SubElement(case, "failure", message=f"{judged.value:.4f}")
        yield case


def _text(words: str) -> str:
    # XML has no way to write most control characters.
    return words.translate(_CONTROL).encode("utf-8", "replace").decode("utf-8")
