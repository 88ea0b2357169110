"""Parsing code that strangers wrote, without ever executing it."""

import ast
import warnings


def parse(source: str) -> ast.Module | None:
    """The syntax tree, or none where the text is no Python that can be parsed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # a stranger's "\d" in a plain string is none of the user's business
        try:
            return ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
