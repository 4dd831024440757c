"""YAML written by people, read strictly: plain values only, and no key twice."""

from collections.abc import Hashable
from typing import Any

import yaml


class StrictYamlError(Exception):
    """The text cannot be used: the message names the line and the fix."""


class _UniqueKeys(yaml.SafeLoader):
    """A safe loader that refuses a key written twice: YAML would silently keep the last, and so perhaps open what was closed."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[object] = set()
        for key_node, _ in node.value:
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else key_node
            if key in seen:
                raise StrictYamlError(f"key {key!r} stands twice (line {key_node.start_mark.line + 1}); keep one of them")
            seen.add(key)
        return super().construct_mapping(node, deep)


def load_strict_yaml(text: str) -> Any:
    """The value that the text holds. Raises StrictYamlError for text that is no YAML or writes a key twice."""
    try:
        # The loader is a subclass of SafeLoader: it builds plain values only.
        return yaml.load(text, Loader=_UniqueKeys)
    except yaml.MarkedYAMLError as error:
        where = f" (line {error.problem_mark.line + 1})" if error.problem_mark else ""
        raise StrictYamlError(f"it is no valid YAML{where}: {error.problem}; mend that line") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise StrictYamlError(f"it is no valid YAML: {str(error).splitlines()[0]}; mend it") from error
