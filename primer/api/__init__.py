"""The HTTP API: sources, events, documents and dead letters over HTTP, one file a group of routes."""
