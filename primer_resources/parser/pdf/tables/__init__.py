"""Finding tables on a page, one file a kind of table."""
