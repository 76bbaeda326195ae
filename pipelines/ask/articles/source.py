"""An article as the ingest pipeline takes it."""

from components.ingest.document import SourceDocument
from tenants.desk.articles import ORIGIN, Article


def source_of(article: Article) -> SourceDocument:
    """Return the document that publishing the article makes."""
    draft = article.draft
    return SourceDocument(
        doc_id=article.doc_id,
        title=draft.title,
        text=draft.text,
        source=ORIGIN,
        lang=draft.lang,
        meta={"trust": draft.trust},
    )
