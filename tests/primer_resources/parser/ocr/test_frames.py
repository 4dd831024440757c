"""Image files: bounded before they are decoded, brought to one resolution, damaged ones named."""

import io
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from primer_core.failures import DocumentFault, Reason
from primer_resources.parser.ocr import frames
from primer_resources.parser.ocr.frames import frame_sizes, load_frame
from primer_resources.parser.ocr.pictures import MAX_PIXELS


def put(folder: Path, data: bytes) -> Path:
    path = folder / "content"
    path.write_bytes(data)
    return path


def reason(path: Path) -> Reason:
    with pytest.raises(DocumentFault) as caught:
        [load_frame(path, number, "scan.tif") for number, _ in enumerate(frame_sizes(path, "scan.tif"))]
    assert "scan.tif" in caught.value.message
    return caught.value.reason


def test_a_bomb_is_refused_by_its_header(tmp_path: Path) -> None:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 0, 0, 0, 0)
    bomb = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(1_000))) + chunk(b"IEND", b"")
    assert reason(put(tmp_path, bomb)) is Reason.TOO_LARGE


def test_one_huge_picture_among_small_ones_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, draw: Any) -> None:
    monkeypatch.setattr(frames, "MAX_IMAGE_PIXELS", 10_000)
    small, large = Image.new("L", (50, 50)), Image.new("L", (200, 200))
    assert reason(put(tmp_path, draw.encoded(small, large, format_="TIFF"))) is Reason.TOO_LARGE


def test_too_many_pictures_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, draw: Any) -> None:
    monkeypatch.setattr(frames, "MAX_FRAMES", 2)
    assert reason(put(tmp_path, draw.encoded(*[Image.new("L", (9, 9))] * 3, format_="TIFF"))) is Reason.TOO_LARGE


def test_damaged_files_have_their_reason(tmp_path: Path, draw: Any) -> None:
    whole = draw.encoded(draw.text(), format_="JPEG")
    assert reason(put(tmp_path, whole[: len(whole) // 2])) is Reason.TRUNCATED
    assert reason(put(tmp_path, b"\x89PNG\r\n\x1a\n and no more")) is Reason.CORRUPT


def test_every_picture_of_a_file_is_a_page(tmp_path: Path, draw: Any) -> None:
    path = put(tmp_path, draw.encoded(Image.new("L", (300, 200)), Image.new("L", (200, 300)), format_="TIFF"))
    assert frame_sizes(path, "x") == [(300, 200), (200, 300)]
    assert load_frame(path, 1, "x").size == (200, 300)


@pytest.mark.parametrize(
    ("dpi", "size"),
    [((300, 300), (400, 200)), ((150, 150), (800, 400)), ((600, 600), (200, 100)), ((204, 98), (588, 612)), ((20, 20), (1200, 600))],
)
def test_images_are_brought_to_300_dpi_with_square_pixels(tmp_path: Path, draw: Any, dpi: tuple[int, int], size: tuple[int, int]) -> None:
    path = put(tmp_path, draw.encoded(Image.new("L", (400, 200), 255), format_="TIFF", dpi=dpi))
    width, height = load_frame(path, 0, "x").size
    assert (width, height) == (pytest.approx(size[0], abs=2), pytest.approx(size[1], abs=2))


def test_letters_tell_the_resolution_that_a_file_does_not(tmp_path: Path, draw: Any) -> None:
    screen = draw.text(size=12, paper=(500, 300), at=(20, 20))
    path = put(tmp_path, draw.encoded(screen, dpi=(72, 72)))
    assert 2.0 < load_frame(path, 0, "x").width / 500 <= 4.0


def test_no_picture_grows_beyond_the_bound(tmp_path: Path, draw: Any) -> None:
    path = put(tmp_path, draw.encoded(Image.new("1", (8_000, 8_000), 1), format_="TIFF", dpi=(150, 150), compression="group4"))
    width, height = load_frame(path, 0, "x").size
    assert width * height <= MAX_PIXELS * 1.01


def test_transparency_is_paper(tmp_path: Path, draw: Any) -> None:
    drawn = Image.new("RGBA", (300, 300), (0, 0, 0, 0))
    assert load_frame(put(tmp_path, draw.encoded(drawn)), 0, "x").getextrema() == (255, 255)


def test_the_cameras_mark_turns_the_picture(tmp_path: Path) -> None:
    out, mark = io.BytesIO(), Image.Exif()
    mark[0x0112] = 6
    Image.new("L", (400, 200), 255).save(out, "JPEG", exif=mark, dpi=(300, 300))
    assert load_frame(put(tmp_path, out.getvalue()), 0, "x").size == (200, 400)
