"""Pages of text, drawn with the font that Pillow carries, and files made of them."""

import io
from collections.abc import Sequence
from pathlib import Path

import pytest
from PIL import Image, ImageDraw, ImageFont

PAPER = (1_900, 1_200)
"""A slip of paper, 16 × 10 cm at 300 dpi, so that the tests are quick."""

LINES = (
    "The harbour master keeps a list of every vessel that",
    "enters the port between sunset and the morning tide.",
    "Each captain reports the draught, the cargo and the",
    "number of passengers before the ropes are made fast.",
    "Fishing boats below twelve metres are free of charge,",
    "while larger ships pay by the tonne and by the night.",
    "Complaints are heard on Tuesdays in the customs house",
    "and answered in writing within a fortnight at most.",
)
LEFT = ("Bread is baked at dawn", "by four women in the", "old mill by the river", "and sold before noon.", "Nothing is left after")
RIGHT = ("Cheese ripens in caves", "under the monastery", "for a year and a day", "before it is carried", "to the autumn market.")
ROWS = (("Station", "Opened", "Visitors"), ("Ashford", "1842", "914220"), ("Bexley", "1866", "120451"), ("Derby", "1839", "399817"))


class Draw:
    """Pictures of pages."""

    lines = LINES

    @staticmethod
    def text(lines: Sequence[str] = LINES, size: int = 50, paper: tuple[int, int] = PAPER, at: tuple[int, int] = (200, 200)) -> Image.Image:
        """One column."""
        page = Image.new("L", paper, 255)
        pen, font = ImageDraw.Draw(page), ImageFont.load_default(size)
        for number, line in enumerate(lines):
            pen.text((at[0], at[1] + number * size * 1.4), line, fill=0, font=font)
        return page

    @staticmethod
    def columns() -> Image.Image:
        """Two columns."""
        page = Draw.text(LEFT, at=(150, 200))
        page.paste(Draw.text(RIGHT, paper=(800, 700), at=(0, 0)), (1_000, 200))
        return page

    @staticmethod
    def table() -> Image.Image:
        """A table without rules."""
        page = Image.new("L", PAPER, 255)
        pen, font = ImageDraw.Draw(page), ImageFont.load_default(50)
        for y, row in enumerate(ROWS):
            for x, cell in enumerate(row):
                pen.text((200 + 550 * x, 200 + 90 * y), cell, fill=0, font=font)
        return page

    @staticmethod
    def unreadable() -> Image.Image:
        """Strokes that look like lines of text and are no letters of any language."""
        page = Image.new("L", (1_800, 1_200), 255)
        pen = ImageDraw.Draw(page)
        for line in range(10):
            for number in range(60):
                x, y = 120 + 26 * number, 150 + 90 * line
                if (number * 7 + line) % 6:
                    pen.arc((x, y, x + 22, y + 14 + (number * line) % 17), 37 * number, 37 * number + 200, fill=0, width=4)
                    pen.line((x, y + 16, x + 9 + (number * 5) % 11, y + (number * 3) % 30), fill=0, width=4)
        return page

    @staticmethod
    def encoded(*pages: Image.Image, format_: str = "PNG", **options: object) -> bytes:
        """An image file; several pages where the format takes them."""
        out = io.BytesIO()
        more = {"save_all": True, "append_images": list(pages[1:])} if len(pages) > 1 else {}
        pages[0].save(out, format_, **more, **{"dpi": (300, 300), **options})
        return out.getvalue()


@pytest.fixture(scope="session")
def draw() -> Draw:
    return Draw()


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What a worker's environment is: Tesseract on one thread."""
    monkeypatch.setenv("OMP_THREAD_LIMIT", "1")
