"""Garbled text: whether a text layer says what its page shows, told from the characters alone.

A PDF whose fonts carry no or a wrong table of characters still gives text: replacement characters, glyph numbers, symbols, or letters
that are all moved by the same step. Words are asked for what no language writes (`is_broken`), and Latin words beyond that for what every
language writes often (`COMMON_WORDS`), never for being in one language's dictionary: a page in German or Korean is not garbled.
"""

import re
import unicodedata

GARBLED_FROM = 0.3
"""Texts with a larger share of broken words are garbled. Of 680 real PDF pages in fifteen languages the worst sound one has 0.19 (a table
of contents whose dots are no characters), one in Korean whose fonts are half broken 0.29; text of glyph numbers has 0.9 and more."""

GARBLED_FROM_WITHOUT_COMMON_WORDS = 0.1
"""The same for Latin text in which common words are missing: letters moved by one step leave 0.1 to 0.5 without a vowel."""

LEAST_CHARACTERS = 50
"""Fewer characters than this prove nothing: one odd word in a short title is no broken text layer."""

LEAST_WORDS = 40
"""So many Latin words hold a common one, whatever their language, unless they are a list of codes."""

LEAST_COMMON_SHARE = 0.02
"""Prose has 0.2 to 0.5, tables and bibliographies 0.05."""

LEAST_LETTERS_WITHOUT_VOWEL = 4
"""A Latin word of so many letters has a vowel in it; abbreviations and a few Slavic words have none, and stay below the bar together."""

_COMMON_WORDS_BY_LANGUAGE = {
    "English": "the of and to in is for on with that as are by or from this be it at not",
    "German": "der die das und ist von mit zu den dem ein eine für auf nicht im des sich",
    "French": "le la les un une des du et est dans pour sur que qui par au avec il",
    "Spanish": "el los las de en por con para del se lo su al una no",
    "Italian": "il di che per non una con del della dei gli nel si da sono",
    "Portuguese": "os as do da dos um uma em com não na no ao",
    "Dutch": "het een van en dat niet op te zijn voor met aan er om",
    "Swedish": "och att det som en på är av för med till den inte ett",
    "Danish, Norwegian": "og det er til af for en ikke har vi der",
    "Finnish": "ja on ei se että oli ovat kuin myös",
    "Polish": "na się do nie jest że to od za po przez",
    "Czech, Slovak": "je na se že do pro by jsou ako sa aj",
    "Hungarian": "az és hogy nem egy is meg ez van",
    "Romanian": "și în de cu la pe nu care din sau",
    "Turkish": "ve bir bu için ile da de olarak çok",
    "Vietnamese": "và của là có các cho không được trong một những",
    "Indonesian, Malay": "yang dan di dari untuk dengan ini itu tidak pada",
    "Welsh": "yn yr ar mae ac ei",
    "Croatian, Serbian, Slovene": "na je se da za su od ne",
}

COMMON_WORDS = frozenset(word for words in _COMMON_WORDS_BY_LANGUAGE.values() for word in words.split())
"""Words that prose cannot do without, in languages of the Latin script. Of one letter none: garbled text has many such words."""

_GLYPH_NAMES = re.compile(r"\(cid:\d+\)|GLYPH<[^<>\s]{1,40}>|(?:/[gG]\d+){2,}|(?:/uni[0-9A-F]{4}){2,}")
"""How extractors write a glyph that stands for no character."""

_PDFIUM_HYPHEN = "\ufffe"
"""PDFium's mark for a hyphen at a line's end."""

_MOJIBAKE = re.compile(
    "[\u00c2-\u00c5\u00cc-\u00d1\u00d8\u00d9\u00e2\u00e3]"
    "[\u0080-\u00bf\u0152\u0153\u0160\u0161\u0178\u017d\u017e\u0192\u02c6\u02dc\u2013-\u203a\u20ac\u2122]"
)
"""Two bytes of UTF-8 that were read as Windows-1252."""

_SYMBOLS = frozenset('!"#$%&*+<=>?@[\\]^_`{|}~')
_LEAST_DISTINCT_SYMBOLS = 3
"""Rules and leaders repeat one symbol."""

_VOWELS = frozenset("aeiouyæœøıəɛɔ")
_MIXING_SCRIPTS = ("LATIN", "GREEK", "CYRILLIC")
"""Alphabets that no word mixes. Others are mixed freely: Korean endings stand on Latin words."""
_LEAST_MIXED_LETTERS = 3
"""Units and symbols (µm, Δt, kΩ) mix two letters."""


def garbled_share(text: str) -> float:
    """The share of the text's characters, spaces apart, that stand in broken words, 0 to 1; 0 where the text is too short to tell."""
    if sum(map(len, text.split())) < LEAST_CHARACTERS:
        return 0.0
    words = _words(text)
    return sum(len(word) for word in words if is_broken(word)) / sum(map(len, words))


def is_garbled(text: str) -> bool:
    """Whether so many of the words are broken that what the page shows must be read anew."""
    share = garbled_share(text)
    return share > GARBLED_FROM or (share > GARBLED_FROM_WITHOUT_COMMON_WORDS and _lacks_common_words(text))


def is_broken(word: str) -> bool:
    """Whether no language writes this word: it holds damage, is made of symbols, mixes alphabets, or is Latin without a vowel."""
    if word.isascii() and word.isdigit():
        return False
    if any(_is_damage(char) for char in word) or _MOJIBAKE.search(word):
        return True
    symbols = [char for char in word if char in _SYMBOLS]
    if 2 * len(symbols) > len(word) and len(set(symbols)) >= _LEAST_DISTINCT_SYMBOLS:
        return True
    scripts = _scripts(word)
    return len(scripts) > 1 or (scripts == {"LATIN"} and _lacks_vowel(word))


def _words(text: str) -> list[str]:
    return _GLYPH_NAMES.sub("\ufffd", text).replace(_PDFIUM_HYPHEN, "-").split()


def _is_damage(char: str) -> bool:
    """A replacement character, one of private use, one that is not assigned, a control character."""
    if char.isascii():
        return char < " " or char == "\x7f"
    return char == "\ufffd" or unicodedata.category(char) in ("Co", "Cn", "Cc", "Cs")


def _scripts(word: str) -> set[str]:
    """The alphabets of a word's letters, of those that are not mixed; none for a word of few letters."""
    letters = [char for char in word if char.isalpha()]
    if len(letters) < _LEAST_MIXED_LETTERS:
        return set()
    if all(char.isascii() for char in letters):
        return {"LATIN"}
    return {script for char in letters for script in _MIXING_SCRIPTS if unicodedata.name(char, "").startswith(script)}


def _lacks_vowel(word: str) -> bool:
    """Whether the word's longest run of letters is long and has no vowel. Accents are taken off first."""
    plain = unicodedata.normalize("NFKD", word).casefold()
    runs = re.split(r"[\W\d_]+", "".join(char for char in plain if not unicodedata.combining(char)))
    longest = max(runs, key=len)
    return len(longest) >= LEAST_LETTERS_WITHOUT_VOWEL and not any(char in _VOWELS for char in longest)


def _lacks_common_words(text: str) -> bool:
    """Whether a text has many words of Latin letters and hardly a common one among them."""
    latin = [
        word for word in (word.strip(".,;:!?()\"'").casefold() for word in _words(text)) if word.isalpha() and "a" <= word[0] <= "\u024f"
    ]
    return len(latin) >= LEAST_WORDS and sum(word in COMMON_WORDS for word in latin) < LEAST_COMMON_SHARE * len(latin)
