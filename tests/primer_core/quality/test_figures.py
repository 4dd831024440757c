from dataclasses import replace

import pytest

from primer_core.failures import Reason
from primer_core.quality.figures import DocumentQuality, summarise

PAGE = DocumentQuality("a.pdf", "pdf", "rules", 1.0, cpu_seconds=2.0, pages=4)


def test_formats_and_engines_are_kept_apart() -> None:
    rows = [PAGE, replace(PAGE, engine="native"), replace(PAGE, format="docx", engine="docling")]
    assert [(row.format, row.engine, row.documents) for row in summarise(rows)] == [
        ("docx", "docling", 1),
        ("pdf", "native", 1),
        ("pdf", "rules", 1),
    ]


def test_an_engine_of_several_formats_has_figures_over_all_of_them() -> None:
    pages = [replace(PAGE, engine="ocr", cer=0.0), replace(PAGE, engine="ocr", format="image", cer=0.2), PAGE]
    found = [(row.format, row.engine, row.documents, row.cer_median) for row in summarise(pages)]
    assert found == [("image", "ocr", 1, 0.2), ("pdf", "ocr", 1, 0.0), ("pdf", "rules", 1, None), ("all", "ocr", 2, 0.1)]


def test_speed_is_of_pages_whose_cost_is_known() -> None:
    killed = replace(PAGE, cpu_seconds=None, reason=Reason.PARSE_TIMEOUT, pages=None)
    (figures,) = summarise([PAGE, replace(PAGE, pages=8, cpu_seconds=4.0), killed])
    assert figures.pages_per_cpu_second == 2
    assert (figures.documents, figures.read, figures.reasons) == (3, 2, {"parse_timeout": 1})


def test_error_rates_of_pages_in_review_stand_apart() -> None:
    waiting = replace(PAGE, cer=0.6, reason=Reason.OCR_BELOW_BAR, in_review=1)
    (figures,) = summarise([replace(PAGE, cer=0.0), replace(PAGE, cer=0.02), replace(PAGE, cer=0.13), waiting])
    assert (figures.cer_median, figures.cer_highest, figures.cer_above) == (0.02, 0.13, 1)
    assert (figures.cer_in_review, figures.pages_in_review) == (0.6, 1)


def test_the_share_kept_is_over_all_words() -> None:
    (figures,) = summarise([replace(PAGE, kept=1.0, words=300), replace(PAGE, kept=0.8, words=100), PAGE])
    assert figures.kept_share == pytest.approx(0.95)
    assert (figures.kept_words, figures.flagged) == (400, 1)


def test_what_nobody_knows_is_none() -> None:
    (figures,) = summarise([replace(PAGE, pages=None)])
    assert figures.order_mean is figures.cer_median is figures.kept_share is figures.pages_per_cpu_second is None
    assert PAGE.score is None


def test_a_documents_score_is_the_lowest_of_its_scores() -> None:
    assert replace(PAGE, order=0.9, tables=0.7, kept=0.99).score == 0.7
    assert replace(PAGE, order=0.99, cer=0.2).score == 0.8
    assert replace(PAGE, cer=1.7).score == 0
