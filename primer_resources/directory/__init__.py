"""The directory: which groups a person belongs to."""
