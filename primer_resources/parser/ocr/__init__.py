"""Reading pages from their pictures. Only `config` and `installation` are light; the rest is imported in a parse worker."""
