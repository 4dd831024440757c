"""Settings that every kind of source has, and how settings written by people become values."""

import reprlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from primer_core.failures import PrimerError
from primer_core.name_lists import split_names


def _names(value: Any) -> Any:
    return split_names(value) if isinstance(value, str) else value


Names = Annotated[tuple[str, ...], BeforeValidator(_names)]
"""A list of names; people write it with commas (see name_lists)."""


class SourceSettings(BaseModel):
    """What a source of any kind can be told, as it stands in the catalog's `sources.settings`. Credentials never stand here."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    groups: Names = ()
    """Who may read what the access file says nothing about; empty is nobody."""
    access_file: Path | None = None
    """The access file (see access.py). A file named here must exist."""
    max_file_mb: Annotated[int, Field(ge=1)] = 200
    """Largest document that is fetched, in MiB."""

    @property
    def max_bytes(self) -> int:
        """The same in bytes."""
        return self.max_file_mb << 20


S = TypeVar("S", bound=SourceSettings)


def load_source_settings(type_: str, model: type[S], values: Mapping[str, Any]) -> S:
    """Settings from plain values. Raises PrimerError that names the setting, its value and the rule."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        known = ", ".join(model.model_fields)
        rule = str(first["msg"]).removeprefix("Value error, ")
        raise PrimerError(f"{type_} setting {name} = {reprlib.repr(first['input'])} is not valid: {rule} (settings: {known})") from error
