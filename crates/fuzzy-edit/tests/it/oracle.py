"""Says what CPython and PyYAML think of texts, one JSON object a line.

First a line {"version": [...], "missing": [...]}. Then, for each {"name", "language", "text"} of a JSON list on
standard input, and with the argument "installed" for each file that came with this Python, a line
{"name", "path", "language", "error", "unknown"}: error is None if the text is valid; unknown says that the
parser met a limit of its own, which is no verdict.
"""

import ast
import json
import os
import sys
import sysconfig
import warnings

try:
    import tomllib
except ImportError:
    tomllib = None
try:
    import yaml
except ImportError:
    yaml = None

LANGUAGES = {
    ".py": "python",
    ".pyi": "python",
    ".json": "json",
    ".toml": "toml",
    ".yaml": "yaml",
    ".yml": "yaml",
}
LARGEST = 8 << 20


class Refused(ValueError):
    """Valid for the parser, and not for the language."""


def refuse_constant(name):
    raise Refused(f"{name} is no JSON")


def check_json(text):
    json.loads(text, parse_constant=refuse_constant)


def check_lines(text):
    for line in text.split("\n"):
        if line.strip():
            check_json(line)


def check_keys(node, seen):
    """PyYAML keeps the last of two equal keys; the language forbids them."""
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        keys = set()
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                if (key.tag, key.value) in keys:
                    raise Refused(f"duplicate key {key.value!r}")
                keys.add((key.tag, key.value))
            check_keys(key, seen)
            check_keys(value, seen)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            check_keys(value, seen)


def check_yaml(text):
    for node in yaml.compose_all(text, Loader=yaml.SafeLoader):
        check_keys(node, set())


CHECKS = {"python": ast.parse, "json": check_json, "jsonl": check_lines}
if tomllib:
    CHECKS["toml"] = tomllib.loads
if yaml:
    CHECKS["yaml"] = check_yaml


def verdict(name, path, language, text):
    error, unknown = None, False
    try:
        CHECKS[language](text)
    except (RecursionError, MemoryError):
        unknown = True
    except (ValueError, SyntaxError) as problem:
        error = f"{type(problem).__name__}: {problem}"
        unknown = "nested parentheses" in error or "too many levels" in error
    except Exception as problem:  # yaml.YAMLError, where there is yaml
        error = f"{type(problem).__name__}: {problem}"
    told = {"name": name, "path": path, "language": language, "error": error, "unknown": unknown}
    print(json.dumps(told))


def installed():
    """The files of the standard library and of site-packages."""
    paths = sysconfig.get_paths()
    roots = {os.path.realpath(paths[key]) for key in ("stdlib", "platstdlib", "purelib", "platlib")}
    # A folder inside another is met on the way.
    outer = [root for root in roots if not any(root.startswith(o + os.sep) for o in roots)]
    for root in sorted(outer):
        for folder, folders, names in os.walk(root):
            folders.sort()
            for name in sorted(names):
                language = LANGUAGES.get(os.path.splitext(name)[1].lower())
                path = os.path.join(folder, name)
                if language in CHECKS and os.path.getsize(path) <= LARGEST:
                    yield os.path.relpath(path, root), path, language


def main():
    warnings.simplefilter("ignore")
    if hasattr(sys, "set_int_max_str_digits"):
        sys.set_int_max_str_digits(0)
    missing = [name for name, found in (("tomllib", tomllib), ("yaml", yaml)) if not found]
    print(json.dumps({"version": list(sys.version_info[:3]), "missing": missing}))
    for given in json.load(sys.stdin):
        if given["language"] in CHECKS:
            verdict(given["name"], None, given["language"], given["text"])
    if "installed" in sys.argv[1:]:
        for name, path, language in installed():
            with open(path, "rb") as file:
                data = file.read()
            try:
                text = data.decode("utf-8-sig")
            except UnicodeDecodeError:
                continue
            verdict(name, path, language, text)


main()
