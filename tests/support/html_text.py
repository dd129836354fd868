# SPDX-License-Identifier: Apache-2.0
"""A strict look at an HTML report without a browser: well formed, complete, and nothing from elsewhere."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable
from html.parser import HTMLParser


class Checker(HTMLParser):
    """Collects the text, and checks that every element is closed in order."""

    VOID = frozenset(("meta", "br"))

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.text: list[str] = []
        self.links: list[str | None] = []

    def handle_starttag(self, tag, attributes):
        self.seen.append(tag)
        self.links += [value for name, value in attributes if name in ("src", "href", "xlink:href")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.seen.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def look_at_text(source: str, headings: Iterable[str]) -> None:
    """Fails for a page that a browser would have to mend, or that loads something."""
    checker = Checker()
    checker.feed(source)
    checker.close()
    assert checker.open == [] and "svg" in checker.seen and "script" not in checker.seen
    assert checker.links == [] and "http" not in source.replace("http://www.w3.org", "") and "url(" not in source
    text = " ".join(checker.text)
    for heading in headings:
        assert heading in text, heading
    for chart in re.findall(r"<svg.*?</svg>", source, re.DOTALL):
        ElementTree.fromstring(chart)
