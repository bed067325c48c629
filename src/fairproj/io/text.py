"""Text from files that may hold any character, made safe to print."""

from __future__ import annotations

import re

# Control characters, which a terminal would obey; line breaks and marks that change the direction
# of text, which mislead a reader; and surrogates, which cannot be printed.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def escape(text: str) -> str:
    """Replace characters that are not safe in a terminal or a text file by their escape codes."""
    return _UNSAFE.sub(lambda match: ascii(match[0])[1:-1], text)
