"""The XML parts of an office file (OOXML), whichever of its two namespaces (transitional, strict) they are in."""

import posixpath
import zipfile
from collections.abc import Iterator, Mapping
from io import BytesIO

from lxml import etree

from tenants.errors import Invalid

# Entities are never resolved and nothing is fetched; archives with a DOCTYPE are refused before they get here.
_PARSER = etree.XMLParser(resolve_entities=False, no_network=True, remove_comments=True, remove_pis=True)


class Package:
    """An office file with its main part and what that refers to.

    Raises `zipfile.BadZipFile`, `KeyError` or `lxml.etree.XMLSyntaxError` for a file that is not whole.
    """

    def __init__(self, data: bytes) -> None:
        self._archive = zipfile.ZipFile(BytesIO(data))
        main = next((target for kind, target, _ in self._relations("") if kind == "officeDocument"), None)
        if main is None:
            raise Invalid("file_damaged")
        self.main = self._xml(main)
        self._related: dict[str, str] = {}
        self.links: dict[str, str] = {}
        for kind, target, ident in self._relations(main):
            if kind == "hyperlink":
                self.links[ident] = target
            else:
                self._related.setdefault(kind, target)

    def related(self, kind: str) -> etree._Element | None:
        """The part of that kind (`styles`, `numbering`, `footnotes`, …) that the main part refers to, if any."""
        target = self._related.get(kind)
        return self._xml(target) if target in self._archive.namelist() else None

    def _xml(self, name: str | None) -> etree._Element:
        return etree.fromstring(self._archive.read(name or ""), _PARSER)

    def _relations(self, part: str) -> Iterator[tuple[str, str, str]]:
        """Kind, target and id of each relation of a part; the package itself has those of the empty name."""
        folder, name = posixpath.split(part)
        path = posixpath.join(folder, "_rels", f"{name}.rels")
        if path not in self._archive.namelist():
            return
        for relation in self._xml(path):
            target = relation.get("Target", "")
            if relation.get("TargetMode") != "External":
                target = posixpath.normpath(posixpath.join(f"/{folder}", target)).lstrip("/")
            yield relation.get("Type", "").rsplit("/", 1)[-1], target, relation.get("Id", "")


def local(element: etree._Element) -> str:
    """An element's name without its namespace."""
    return element.tag.rpartition("}")[2]


def child(element: etree._Element | None, *path: str) -> etree._Element | None:
    """The first element under `element` along a path of names."""
    for name in path:
        element = next((inner for inner in element if local(inner) == name), None) if element is not None else None
    return element


def attributes(element: etree._Element | None) -> Mapping[str, str]:
    """An element's attributes by their names without namespace; none for no element."""
    if element is None:
        return {}
    return {str(name).rpartition("}")[2]: str(value) for name, value in element.attrib.items()}


def value(element: etree._Element | None, *path: str) -> str:
    """The `val` of the element along a path of names; empty when there is none."""
    return attributes(child(element, *path)).get("val", "")


def is_on(element: etree._Element | None, *path: str) -> bool:
    """Whether a switch such as `b` or `vanish` is there and not off."""
    flag = child(element, *path)
    return flag is not None and attributes(flag).get("val", "1").lower() not in {"0", "false", "off", "none"}
