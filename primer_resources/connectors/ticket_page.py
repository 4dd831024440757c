"""A ticket as a document: HTML whose title is the ticket's, whose comments are sections. The same ticket is always the same bytes.

HTML, since its bytes say what it is whatever the ticket is called; and what people wrote as Markdown keeps its headings, lists and tables.
"""

from collections.abc import Iterable
from html import escape

from markdown_it import MarkdownIt
from pydantic import AwareDatetime, BaseModel, Field

DEEPEST = 6
"""HTML has no heading below it."""


class Person(BaseModel):
    """Who wrote something."""

    login: str


class Label(BaseModel):
    """A label of a ticket."""

    name: str


class Comment(BaseModel):
    """A comment, as the issues API of GitHub gives it. Times need a zone."""

    id: int
    user: Person | None = None
    created_at: AwareDatetime
    body: str | None = None


class Ticket(BaseModel):
    """A ticket, as the issues API of GitHub gives it; `user` is None where the account is gone."""

    number: int
    title: str
    state: str
    user: Person | None = None
    labels: tuple[Label, ...] = ()
    created_at: AwareDatetime
    updated_at: AwareDatetime
    body: str | None = None
    comments: int = 0
    html_url: str
    pull_request: dict[str, object] | None = Field(default=None)


def render_ticket(ticket: Ticket, comments: Iterable[Comment]) -> bytes:
    """The document, UTF-8. What changes with every edit (the time of the last one) is left out, or each would change the first passage."""
    labels = ", ".join(label.name for label in ticket.labels) or "none"
    facts = f"Ticket {ticket.number}, {ticket.state}, opened by {_name(ticket.user)} on {ticket.created_at:%Y-%m-%d}. Labels: {labels}."
    parts = [
        "<!DOCTYPE html>",
        f'<html><head><meta charset="utf-8"><title>{escape(ticket.title)}</title></head><body>',
        f"<h1>{escape(ticket.title)}</h1>",
        f"<p>{escape(facts)}</p>",
        _render(ticket.body, below=1),
    ]
    for comment in comments:
        parts.append(f"<h2>{escape(f'Comment by {_name(comment.user)} on {comment.created_at:%Y-%m-%d}')}</h2>")
        parts.append(_render(comment.body, below=2))
    parts.append("</body></html>\n")
    return "\n".join(parts).encode("utf-8", "backslashreplace")


def _name(person: Person | None) -> str:
    return "a deleted account" if person is None else person.login


def _render(text: str | None, below: int) -> str:
    """Markdown as HTML, its headings moved below those of the document. HTML inside it is shown as text."""
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = markdown.parse(text or "")
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(DEEPEST, int(token.tag[1:]) + below)}"
    rendered: str = markdown.renderer.render(tokens, markdown.options, {})
    return rendered.rstrip("\n")
