"""Lists of names as people write them: with commas, and in quotes where a name has a comma of its own."""

import csv


def split_names(text: str) -> list[str]:
    """The names in a text, without the space around them; none is empty. `"a, b",c` are two: `a, b` and `c`.

    Raises ValueError for a name that is too long for one.
    """
    rows = csv.reader([text.replace("\n", " ").replace("\r", " ").replace("\0", "")], skipinitialspace=True)
    try:
        return [name.strip() for row in rows for name in row if name.strip()]
    except csv.Error as error:
        raise ValueError(f"a list of names cannot be read: {error}") from error
