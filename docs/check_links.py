"""Check every link of the built site that stays inside it: the page and the place on it.

python docs/check_links.py [docs/_build/html]
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

SITE = Path(__file__).parent / "_build" / "html"


class Page(HTMLParser):
    """The links of a page, what it loads, and the places that links can point to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.loaded: set[str] = set()
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the attributes of a tag."""
        given = {name: value for name, value in attrs if value}
        self.places |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.add(given["href"])
        if tag in ("img", "script", "iframe", "source") and "src" in given:
            self.loaded.add(given["src"])
        if tag == "link" and "href" in given and given.get("rel") not in ("canonical", "prev"):
            self.loaded.add(given["href"])


def find_faults(site: Path) -> list[str]:
    """A sentence for each link to nothing, and for each file that would come from elsewhere."""
    paths = [path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts]
    pages = {path: Page(path.read_text("utf-8")) for path in paths}
    faults = []
    for path, page in pages.items():
        name = path.relative_to(site)
        for link in sorted(page.loaded):
            if urlsplit(link).scheme in ("http", "https") or link.startswith("//"):
                faults.append(f"{name} loads {link} from the network")
        for link in sorted(page.links | page.loaded):
            fault = _fault(path, link, pages)
            if fault:
                faults.append(f"{name}: {fault}")
    return faults


def _fault(path: Path, link: str, pages: dict[Path, Page]) -> str:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return ""
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not target.exists():
        return f"{link} does not exist"
    place = unquote(parts.fragment)
    if place and target in pages and place not in pages[target].places:
        return f"{link} has no such place"
    return ""


if __name__ == "__main__":
    found = find_faults(Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else SITE)
    print("\n".join(found) or "all links inside the site lead somewhere")
    sys.exit(bool(found))
