"""The `primer` command, one file a group of commands."""
