"""Words about exceptions, whatever their own ``__str__`` does."""


def describe(error: BaseException) -> str:
    """``TypeError: words``, at most 500 characters."""
    try:
        return f"{type(error).__name__}: {error}"[:500]
    except Exception:
        return type(error).__name__
