"""The data products, one file an asset, each thin: claim, call a resource, apply a rule, complete, metadata."""
