"""The document store: bodies on a tenant's drives, and the manifests that own them."""

from primer_resources.document_store.store import Arrived, DocumentStore, TenantStore

__all__ = ["Arrived", "DocumentStore", "TenantStore"]
