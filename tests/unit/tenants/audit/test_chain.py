"""The audit chain detects every manipulation."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenants.audit.chain import GENESIS, ChainVerifier, Content, Head, Link, Verification
from tests.audits import AT


def link(previous: Link | None, number: int, **fields: object) -> Link:
    """Return the link after `previous`, by default a turn."""
    content = Content("person", "session", f"salt {number}", f'{{"n":{number}}}')
    new_link = Link(
        tenant_id="acme",
        sequence=number,
        kind="turn",
        at=AT,
        turn_id=f"t{number}",
        outcome="answered",
        reason=None,
        note=None,
        digest=content.digest,
        previous=previous.hash if previous else GENESIS,
        content=content,
    )
    return seal(replace(new_link, **fields))  # type: ignore[arg-type]


def seal(new_link: Link) -> Link:
    return replace(new_link, hash=new_link.computed())


def note_link(previous: Link, kind: str, note_body: object) -> Link:
    """Return a link that records an erasure or a pruning."""
    fields = {"kind": kind, "turn_id": None, "outcome": None, "digest": None, "content": None}
    return link(previous, previous.sequence + 1, note=json.dumps(note_body), **fields)


def chain(length: int) -> list[Link]:
    links: list[Link] = []
    for number in range(1, length + 1):
        links.append(link(links[-1] if links else None, number))
    return links


def verifier(links: list[Link], *anchors: Head) -> Verification:
    verifier = ChainVerifier("acme", anchors)
    verifier.feed(links)
    return verifier.result()


def head(links: list[Link]) -> Head:
    return Head(links[-1].sequence, links[-1].hash)


CHAIN = chain(6)
HEAD = head(CHAIN)

CHANGES: list[Callable[[Link], Link]] = [
    lambda one: replace(one, outcome="refused"),
    lambda one: replace(one, turn_id="another"),
    lambda one: replace(one, tenant_id="globex"),
    lambda one: replace(one, at=AT.replace(year=2025)),
    lambda one: replace(one, kind="pruning", note="{}"),
    lambda one: replace(one, reason="no_relevant_context"),
    lambda one: replace(one, hash="f" * 64),
    lambda one: replace(one, content=None),
    lambda one: replace(one, content=replace(one.content, body="{}") if one.content else None),
    lambda one: replace(one, content=replace(one.content, person="x") if one.content else None),
    lambda one: replace(one, content=replace(one.content, session_id="x") if one.content else None),
    lambda one: seal(replace(one, outcome="refused")),
]


def test_an_untouched_chain_is_whole() -> None:
    assert verifier(CHAIN, HEAD) == Verification(6, 0, HEAD, ())
    assert verifier([], Head(0, GENESIS)).faults == ()


@given(st.integers(0, 5), st.sampled_from(CHANGES))
def test_a_changed_link_is_found(place: int, change: Callable[[Link], Link]) -> None:
    touched = [*CHAIN]
    touched[place] = change(touched[place])
    result = verifier(touched, HEAD).faults
    assert result
    # A completely recomputed link is detected by the next one.
    assert min(fault.sequence for fault in result) in (place + 1, place + 2)


@given(st.sets(st.integers(0, 5), min_size=1))
def test_removed_links_are_found(places: set[int]) -> None:
    assert verifier([one for place, one in enumerate(CHAIN) if place not in places], HEAD).faults


@given(st.permutations(range(6)))
def test_links_in_another_order_are_found(order: list[int]) -> None:
    moved = [CHAIN[place] for place in order]
    renumbered = [replace(one, sequence=place + 1) for place, one in enumerate(moved)]
    assert bool(verifier(moved, HEAD).faults) == (order != list(range(6)))
    assert bool(verifier(renumbered, HEAD).faults) == (order != list(range(6)))


def test_an_inserted_link_is_found() -> None:
    assert verifier([*CHAIN[:3], link(CHAIN[2], 4, turn_id="forged"), *CHAIN[3:]], HEAD).faults


def test_a_recomputed_chain_is_detected_by_an_external_head() -> None:
    forged = [link(None, 1, outcome="refused")]
    forged += [link(forged[0], 2), link(CHAIN[1], 3)]
    forged = [forged[0], forged[1], link(forged[1], 3)]
    assert verifier(forged, head(forged)).faults == ()
    assert [fault.kind for fault in verifier(forged, head(forged), head(CHAIN[:2])).faults] == ["changed"]


def test_erased_content_is_accounted_for_and_removed_content_is_not() -> None:
    emptied = [replace(item, content=None) if item.sequence in (2, 4) else item for item in CHAIN]
    note_body = [*emptied, note_link(CHAIN[-1], "erasure", {"sequences": [2]})]
    result = verifier(note_body, head(note_body))
    assert (result.erased, [(fault.kind, fault.sequence) for fault in result.faults]) == (1, [("content_missing", 4)])


def test_a_pruned_beginning_is_accounted_for_and_a_removed_one_is_not() -> None:
    pruned = [*CHAIN[3:], note_link(CHAIN[-1], "pruning", {"sequence": 3, "hash": CHAIN[2].hash})]
    assert verifier(pruned, head(pruned), head(CHAIN[:2])).faults == ()
    assert [fault.kind for fault in verifier(pruned[1:], head(pruned)).faults] == ["missing"]
    lying = [*CHAIN[3:], note_link(CHAIN[-1], "pruning", {"sequence": 3, "hash": "0" * 64})]
    assert [fault.kind for fault in verifier(lying, head(lying)).faults] == ["missing"]


@pytest.mark.parametrize("note_body", ["", "{", "[]", '{"sequences": 3}', '{"sequence": 1}'])
@pytest.mark.parametrize("kind", ["erasure", "pruning"])
def test_a_note_that_cannot_be_read_is_a_fault(kind: str, note_body: str) -> None:
    broken = seal(replace(note_link(CHAIN[-1], kind, {}), note=note_body))
    assert "unreadable" in {fault.kind for fault in verifier([*CHAIN, broken]).faults}


def test_a_chain_without_its_own_record_of_the_end_is_cut_off() -> None:
    assert [fault.kind for fault in verifier(CHAIN, Head(0, GENESIS)).faults] == ["cut_off"]
