"""Stored states: what is kept of a document at a stage, and on which drive."""

from enum import StrEnum


class DriveKind(StrEnum):
    """The two drives of a tenant: what came in, and what the stages made of it."""

    INTAKE = "intake"
    PIPELINE = "pipeline"
