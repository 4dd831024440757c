"""The document store: drives that hold objects, and what is kept in them."""

from primer_resources.document_store.store import DocumentStore

__all__ = ["DocumentStore"]
