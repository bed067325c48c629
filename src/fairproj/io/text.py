"""Text from files that may hold any character, made safe to print."""

from __future__ import annotations

import re

# Control characters, which a terminal would obey; line breaks, marks that change the direction of
# text and characters without width, which mislead a reader; and surrogates, which no output can
# hold.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)


def escape(text: str) -> str:
    """Replace characters that are not safe in a terminal or a text file by their escape codes."""
    return _UNSAFE.sub(lambda match: ascii(match[0])[1:-1], text)
