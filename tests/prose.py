"""Text for chunkers: prose in which no two sentences are alike, and a page with one of everything."""

from random import Random

NOUNS = "road river letter window market engine teacher garden paper signal winter bridge kitchen valley doctor ticket".split()  # noqa: SIM905
MARKDOWN = """# The `foo` *command*: a [guide](http://x.org/y)

Moderators *MUST*: read (the `rules`) and **not**, ever, *skip*. See [the page](http://a.org/c_d).

- **Out of Office**: set it
- plain item
  - sub [link](http://q.org/)

## Numbers

| name | value [of](http://u.org/) |
|---|---|
| **one** | 1 |

## Code

```
def f():
    return `1`
```

## Nothing below
"""


def prose(random: Random, sentences: int) -> str:
    """Sentences of 8 to 16 words, no two alike."""
    made = []
    for _ in range(sentences):
        words = [f"{random.choice(NOUNS)}{random.randint(1, 999)}" for _ in range(random.randint(8, 16))]
        made.append(" ".join(words).capitalize() + ".")
    return " ".join(made)
