"""The outside world, one folder or file a thing: catalog, document store, connectors, parser, chunker, embedder, indexes."""
