"""Credentials by reference: a source or a drive names where its secret is (`env:NAME`, `file:PATH`), and only this module reads it.

The catalog keeps the reference, no log and no error shows the secret, and it is read anew whenever a source refuses it, so that a
rotated token works without a restart.
"""

import os
import re
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator

from primer_core.failures import PrimerError

MAX_BYTES = 65_536
_FORM = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*|file:/.+")


def check_reference(reference: str) -> str:
    """The reference, if it has the right form. Raises PrimerError that does not repeat it: it may be the secret itself."""
    if not _FORM.fullmatch(reference):
        raise PrimerError("credentials are given by reference, never as such: write env:NAME, or file:/PATH with an absolute path")
    return reference


def check_address(url: str) -> str:
    """The address, if no secret is in it. Raises PrimerError that does not repeat it, ValueError where it is no address."""
    parts = urlsplit(url)
    if parts.password is not None or (parts.scheme in ("http", "https") and parts.username is not None):
        raise PrimerError(f"the address of {parts.hostname} has a user or password in it, which everybody would see; "
                          "take it out, and name where the secret is with --credentials env:NAME or file:/PATH")  # fmt: skip
    return url


Address = Annotated[str, AfterValidator(check_address)]
"""A setting that holds an address; it may stand in logs and in what is indexed."""


def read_secret(reference: str | None) -> str | None:
    """The secret that a reference names, without the line end of a file; None without a reference.

    Raises PrimerError that names the reference where nothing is there.
    """
    if reference is None:
        return None
    kind, _, place = check_reference(reference).partition(":")
    if kind == "env":
        secret = os.environ.get(place, "")
        fix = f"set the environment variable {place} where Primer runs"
    else:
        try:
            with Path(place).open(encoding="utf-8") as file:
                secret = file.read(MAX_BYTES).strip()
        except OSError as error:
            raise PrimerError(f"credentials {reference} cannot be read ({error.strerror}); write the secret there") from error
        except UnicodeDecodeError as error:
            raise PrimerError(f"credentials {reference} are not UTF-8 text; write the secret there") from error
        fix = f"write the secret into {place}"
    if not secret:
        raise PrimerError(f"credentials {reference} are empty; {fix}")
    return secret
