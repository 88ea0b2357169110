"""Numbers in what people read."""


def counted(number: int, noun: str) -> str:
    """``1 task``, ``2,550 tasks``; ``noun`` in the singular."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun[:-1]}ies" if noun[-1] == "y" and noun[-2] not in "aeou" else f"{number:,} {noun}s"
