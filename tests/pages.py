"""Pages as tests read them, and that a page asks for nothing."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser

VOID = ("meta", "br", "input", "img", "hr", "wbr")


class Page(HTMLParser):
    """Tags, addresses, ids, images and texts of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.ids: list[str] = []
        self.images: list[dict[str, str]] = []
        self.text = ""
        self.open: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        named = {name: value or "" for name, value in attributes}
        self.tags.append(tag)
        self.addresses += [named[name] for name in ("src", "href", "action", "data") if name in named]
        self.ids += [named["id"]] if "id" in named else []
        self.images += [named] if tag == "img" else []
        self.open += [] if tag in VOID else [tag]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("style", "script"):
            self.text += data


def alone(html: str, *links: str) -> Page:
    """Read a page that is whole, asks for nothing and runs its search alone.

    Args:
        links: How addresses may begin that a person follows.
    """
    page = Page(html)
    assert page.open == [], "every tag is closed"
    assert not set(page.tags) & {"link", "iframe", "object", "embed", "form", "base"}
    allowed = ("data:image/svg+xml;base64,", *links)
    assert [address for address in page.addresses if not address.startswith(allowed)] == []
    (script,) = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    assert page.tags.count("script") == 1
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'"
    assert f'http-equiv="Content-Security-Policy" content="{policy}"' in html
    assert not re.search(r"url\(|@import", html)
    return page
