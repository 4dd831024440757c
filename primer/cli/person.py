"""Who decides: recorded beside a decision, so that others can ask."""

import os
from getpass import getuser


def person() -> str:
    """The user's name; in a container without one, the number."""
    try:
        return getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"
