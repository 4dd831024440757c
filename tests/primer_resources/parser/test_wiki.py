"""Front matter and template codes are no text; what a page shows as code is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from primer_resources.parser.wiki import split_page


@pytest.mark.parametrize(
    ("text", "title", "body"),
    [
        ("---\ntitle: Leave\ntags: [a]\n---\n\nBody\n", "Leave", "\nBody\n"),
        ('---\ntitle: "Colon: inside"\n---\nBody', "Colon: inside", "Body"),
        ("---\nlayout: page\n...\nBody", "", "Body"),
        ("---\ntitle: {{ page }} broken: [\n---\nBody", "{{ page }} broken: [", "Body"),
        ("---\ndate: 2024-99-99\ntitle: Odd\n---\nBody", "Odd", "Body"),
        ('+++\ntitle = "Leave"\nweight = 3\n+++\nBody', "Leave", "Body"),
        ("+++\nno toml\n+++\nBody", "", "+++\nno toml\n+++\nBody"),
        ("---\n---\nBody", "", "---\n---\nBody"),
        ("Body first\n---\ntitle: x\n---\n", "", "Body first\n---\ntitle: x\n---\n"),
        ("---\n\nA rule, then prose.\n\n---\n", "", "---\n\nA rule, then prose.\n\n---\n"),
        ("", "", ""),
    ],
)
def test_front_matter_is_parted_from_the_page(text: str, title: str, body: str) -> None:
    page = split_page(text)
    assert (page.title, page.body) == (title, body)


def test_front_matter_is_kept_as_plain_values() -> None:
    page = split_page("---\ntitle: Leave\nreviewed: 2024-05-01\ntags: [a, b]\n---\nBody")
    assert page.metadata == {"front_matter": {"title": "Leave", "reviewed": "2024-05-01", "tags": ["a", "b"]}}
    assert split_page("---\na: &a [*a]\n---\nx").metadata == {"front_matter": {}}


@pytest.mark.parametrize(
    ("text", "body"),
    [
        ('See [travel]({% page "/travel-101/" %}) first.', "See [travel]() first."),
        ("An [agreement]({{site.base_url}}/agreements/).", "An [agreement](/agreements/)."),
        ('{% alert "Mind", "warning" %}\nDo this.\n{% endalert %}', "\nDo this.\n"),
        ("{{< note >}}Do this.{{< /note >}} {{% notice tip %}}x{{% /notice %}}", "Do this. x"),
        ("a {{ page.title | upcase }} b", "a  b"),
        ("{{Infobox\n| area = {{convert|3|km2}}\n| name = {{lang|fr|x}}\n}}A town.", "A town."),
        ("[[_TOC_]]\n[[TOC]]\n__NOTOC__\nText", "\n\n\nText"),
        ('- [a](b){:target="_blank" .usa-link}\n{:toc}', "- [a](b)\n"),
        ('{% comment %} to do: {% page "x" %} {% endcomment %}Text', "Text"),
        ("{% raw %}{{ shown }}{% endraw %} {{ gone }}", "{{ shown }} "),
        ('- item\n\n    {% image "a.png" %}\n    words', "- item\n\n    \n    words"),
    ],
)
def test_template_codes_go_and_the_words_between_them_stay(text: str, body: str) -> None:
    page = split_page(text)
    assert page.body == body
    assert page.metadata["template_codes"]


@pytest.mark.parametrize(
    "text",
    [
        "Use `{% page %}` or ``{{< x >}}``.",
        "```liquid\n{% include x %}\n```\nText",
        "- item\n  ~~~\n  {{ x }}\n  ~~~\n",
        "Text:\n\n    {{ code }}\n\n    {% more %}\n\nEnd",
        "$$ {{a} \\over {b}} $$ and \\frac{{x}}{{y}} and x_{{i}} and \\boxed{{}}",
        "{ {x} } and {{}} and {{{1}}} and {{ open",
        "an __init__ file and [[link]]",
    ],
)
def test_what_is_shown_as_code_or_is_none_stays(text: str) -> None:
    page = split_page(text)
    assert (page.body, page.metadata) == (text, {})


def test_html_keeps_what_it_shows_and_loses_codes() -> None:
    page = split_page("---\nlayout: x\n---\n<p>a {{ b.c }}<code>{{ d }}</code><script>{% e %}</script>{% f %}</p>", is_html=True)
    assert page.body == "<p>a <code>{{ d }}</code><script>{% e %}</script></p>"
    assert page.metadata == {"front_matter": {"layout": "x"}, "template_codes": ["{{ b.c }}", "{% f %}"]}


PIECES = [
    *("{%", "%}", "{{", "}}", "{{<", ">}}", "`", "```\n", "\n\n    ", "\n", "word "),
    *("{% raw %}", "{% endraw %}", "$$", "<pre>", "</pre>"),
]


@given(st.lists(st.sampled_from(PIECES), max_size=60).map("".join), st.booleans())
def test_no_word_between_codes_is_invented(text: str, is_html: bool) -> None:
    page = split_page(text, is_html)
    gone = "".join(page.metadata.get("template_codes", []))
    assert page.body.count("word") + gone.count("word") == text.count("word")


@pytest.mark.parametrize("opening", ["{%", "{{", "{% comment %}", "{% raw %}", "<pre>", "<!--", "`", "$$ ", "{{< ", "{{a"])
def test_openings_that_are_never_closed_end_in_time(opening: str) -> None:
    text = (opening + " x ") * 3_000
    for is_html in (False, True):
        assert split_page(text, is_html).body.count("x") <= 3_000
