"""A text layer that says something else than its page is found out, in any language; one that says what it shows never is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from primer_core.garbled import GARBLED_FROM, LEAST_CHARACTERS, garbled_share, is_broken, is_garbled

SOUND = {
    "English": (
        "The committee met on the first Monday of the month and heard a report on the state of the bridges. It was said that two of them "
        "are to be closed for repairs before the winter, and that the cost will be shared by the county and the railway."
    ),
    "German": (
        "Die Bewerbung muss bis zum Ende des Monats schriftlich eingereicht werden, andernfalls wird sie im laufenden Verfahren nicht mehr "
        "berücksichtigt. Über Einsprüche entscheidet der Ausschuss, größere Beträge genehmigt der Vorstand."
    ),
    "Czech": "Prst, vlk, smrt, krk a čtvrt zmrzl. Žádosti je třeba podat do konce měsíce, jinak nebudou v probíhajícím řízení zohledněny.",
    "Vietnamese": "Tất cả các đơn đăng ký phải được nộp trước cuối tháng, nếu không sẽ không được xem xét trong quá trình hiện tại.",
    "Russian": "Заявления следует подать до конца месяца, иначе они не будут учтены в текущем производстве, о чём сообщат письмом.",
    "Greek": "Οι αιτήσεις πρέπει να υποβληθούν πριν από το τέλος του μήνα, αλλιώς δεν θα ληφθούν υπόψη στην τρέχουσα διαδικασία.",
    "Korean": "지원서는 이달 말까지 제출해야 하며, 그렇지 않으면 고려되지 않습니다. API를 PDF로 변환합니다. 웹서버는 전환한다.",
    "Chinese": "申请必须在月底前提交，否则在当前程序中将不予考虑。所有文件应当使用中文书写，并且附上身份证明的复印件以及最近的照片两张。",
    "Arabic": "يجب تقديم الطلبات قبل نهاية الشهر وإلا فلن تؤخذ في الاعتبار في الإجراء الحالي وسوف يتم إخطار مقدم الطلب كتابيا.",
    "code": 'for (int i = 0; i < n; i++) { if (a[i] != NULL && *a[i] == "x") { printf("%s\\n", a[i]->name); } } // return it',
    "figures": "Ashford 1842 6 3,914,220 Bexley 1866 2 1,204,511 Crewe 1837 12 2,711,040 Derby 1839 7 3,998,176 Ely 1845 3 2,111,004",
    "contents": "1 Introduction ............................ 1\n2 Storage ................................. 14\n3 Safety .............. 27",
    "codes": "BRKT-4410 XZ-12 HTML HTTP PDF SSNVS TW-300 DN50 PN16 M12x40 CRNGO 1.4301 DIN 933 ISO 4017 in the box of parts to be checked",
    "mathematics": "∑_{i=1}^{n} x_i ≤ ∫ f(x) dx ⇒ ∀ε>0 ∃δ>0: |x−a|<δ, where α, β and γ are constants and Δt is the step in µm of the grid.",
}


@pytest.mark.parametrize("language", SOUND)
def test_sound_text_is_not_garbled_in_any_language(language: str) -> None:
    assert not is_garbled(SOUND[language])
    assert not is_garbled(SOUND[language] * 5)


def moved(text: str, step: int) -> str:
    """Letters moved along the alphabet."""
    return "".join(
        chr((ord(c) - ord(first) + step) % 26 + ord(first)) if first else c
        for c, first in ((c, "a" if "a" <= c <= "z" else "A" if "A" <= c <= "Z" else "") for c in text)
    )


@pytest.mark.parametrize(
    "broken",
    [
        "".join(chr(ord(c) - 29) for c in SOUND["English"]),  # glyph numbers of a font that begins with the space
        " ".join(f"(cid:{ord(c)})" for c in SOUND["English"]),
        "GLYPH<c=12,font=/AAAAAC> GLYPH<c=7,font=/AAAAAC> " * 20,
        "/g17/g4/g9 /g22/g3 " * 10,
        "\ufffd" * 60,
        "\ue0a3\ue0b1\ue0c4 \ue0a3\ue0c9 " * 10,
        '!"#$ %&"\' #!$ &%$# "!#$% &#"! $%& !#%"$ ' * 4,
        SOUND["Russian"].encode().decode("cp1252", "replace"),
        moved(SOUND["English"], 3),
        "Ϲeн tаble οf сharасters thаt mіxes аlphаbеts wіthіn еvеrу wοrd οf thе tехt, wіthοut ехсеptіοn",
    ],
)
def test_each_kind_of_broken_text_layer_is_found(broken: str) -> None:
    assert is_garbled(broken)


def test_a_hyphen_as_pdfium_marks_it_is_no_damage() -> None:
    assert garbled_share("the transship\ufffement of pre\ufffescribed prepara\ufffetions is con\ufffetrolled by the agen\ufffecy") == 0.0


@pytest.mark.parametrize(
    ("word", "broken"),
    [
        ("2026", False),
        ("---------", False),
        ("=======>", False),
        ("rhythm", False),
        ("HTTP/1.1", True),  # alone it has no vowel; a text of nothing else is none
        ("µm", False),
        ("kΩ", False),
        ("API를", False),
        ("Ã©tÃ©", True),
        ("wo\x02rd", True),
        ("$%&*#", True),
    ],
)
def test_what_makes_a_word_broken(word: str, broken: bool) -> None:
    assert is_broken(word) is broken


@given(st.text(max_size=200))
def test_the_share_is_a_share_whatever_the_text(text: str) -> None:
    assert 0.0 <= garbled_share(text) <= 1.0


@given(st.text(max_size=LEAST_CHARACTERS - 1))
def test_a_short_text_is_never_called_garbled(text: str) -> None:
    assert not is_garbled(text)


@given(st.sampled_from(sorted(SOUND)), st.integers(1, 4))
def test_line_breaks_change_nothing(language: str, width: int) -> None:
    words = SOUND[language].split()
    lines = "\r\n".join(" ".join(words[at : at + width]) for at in range(0, len(words), width))
    assert garbled_share(lines) == garbled_share(SOUND[language])


@given(st.sampled_from(sorted(SOUND)), st.sampled_from(["\ufffd", "\ue012", "(cid:7)"]), st.floats(0.5, 1.0))
def test_damage_in_half_of_the_words_is_enough(language: str, damage: str, share: float) -> None:
    words = SOUND[language].split()
    hurt = {place for place in range(len(words)) if (place + 1) * share >= int(place * share) + 1}
    text = " ".join(damage * max(1, len(word)) if place in hurt else word for place, word in enumerate(words))
    broken = sum(len(word) for place, word in enumerate(words) if place in hurt) / sum(map(len, words))
    assert is_garbled(text) or broken <= GARBLED_FROM + 0.1
