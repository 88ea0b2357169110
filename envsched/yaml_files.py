"""YAML as settings are written in it: no key twice, and errors of one line."""

from pathlib import Path
from typing import Any

import yaml

from envsched.errors import ConfigError


class _Loader(yaml.SafeLoader):
    """YAML without repeated keys: of two values for one setting, neither is what was meant."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if key.value in seen if isinstance(key, yaml.ScalarNode) else False:
                raise yaml.constructor.ConstructorError(None, None, f"{key.value!r} occurs twice", key.start_mark)
            seen.add(str(key.value))
        return super().construct_mapping(node, deep)


def parse_yaml(text: str, where: str) -> Any:
    """Raises ConfigError in one line, where YAML's own errors draw pictures."""
    try:
        return yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise ConfigError(f"{where} is not valid YAML: {place}{error.problem or error.context}; mend it") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(f"{where} is not valid YAML: {str(error).splitlines()[0]}; mend it") from None


def read_yaml(path: Path) -> Any:
    """What the file holds. Raises ConfigError when it can't be read or is no YAML."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"config file {path}: {error.strerror}; give a YAML file of settings") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"config file {path}: not UTF-8 at byte {error.start}; save it as UTF-8") from None
    return parse_yaml(text, f"config file {path}")
