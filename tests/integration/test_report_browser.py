# SPDX-License-Identifier: Apache-2.0
"""The HTML report as a browser shows it: headless Chromium where there is one, else a strict look at the text.

Nothing is installed for this. Which of the two it was stands in the test's name.
"""

import re
import shutil
import subprocess
import sys

import pytest
from html_text import look_at_text
from launcher import PROGRAMS

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
HEADINGS = (
    "The device when most was held",
    "Held (light), in use (dark) and its peak (dashed) over time",
    "Placements",
    "Request sizes",
    "Where the memory was when most was held",
    "Processes",
    "Waste by cause",
)


def dump(page, folder):
    """The document after Chromium has loaded it, and what it complained about."""
    command = [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
               f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=2000", "--enable-logging=stderr",
               "--host-resolver-rules=MAP * ~NOTFOUND", "--dump-dom", page.as_uri()]  # fmt: skip
    done = subprocess.run(command, capture_output=True, timeout=90)
    return done.stdout.decode(), done.stderr.decode(errors="replace")


@pytest.fixture
def page(gml, tmp_path):
    program = str(PROGRAMS / "fake_gpu.py")
    assert gml("-q", "--simulate", "h100", sys.executable, program, "2").returncode == 0
    assert gml("report", "latest", "--html", "page.html").returncode == 0
    return tmp_path / "page.html"


@pytest.mark.parametrize("by", ["chromium" if CHROMIUM else "text"])
def test_the_page_can_be_read(page, tmp_path, by):
    source = page.read_text()
    if by == "text":
        look_at_text(source, HEADINGS)
        return
    # A probe in the page asks the browser where each chart and each word came to lie.
    probe = """<script>
      const out = [];
      for (const svg of document.querySelectorAll('svg')) {
        const box = svg.getBoundingClientRect();
        const texts = [...svg.querySelectorAll('text')].filter(t => {
          const b = t.getBoundingClientRect();
          return b.left < box.left - 1 || b.right > box.right + 1 || b.top < box.top - 1 || b.bottom > box.bottom + 1;
        });
        out.push([Math.round(box.width), Math.round(box.height), texts.length,
                  svg.querySelectorAll('rect,polygon').length].join(' '));
      }
      document.title = 'charts ' + out.join(',') + ' wide ' +
        (document.documentElement.scrollWidth > window.innerWidth);
    </script></body>"""
    probed = tmp_path / "probed.html"
    probed.write_text(source.replace("</body>", probe))
    dom, said = dump(probed, tmp_path)
    title = re.search(r"<title>charts (.*?) wide (\w+)</title>", dom)
    assert title, said[-2000:]
    charts = [[int(number) for number in chart.split()] for chart in title[1].split(",")]
    assert len(charts) >= 4
    for width, height, outside, shapes in charts:
        assert width > 400 and height > 30 and shapes > 0
        assert outside == 0, "a label lies outside of its chart"
    assert title[2] == "false", "the page is wider than the window"
    for heading in HEADINGS:
        assert heading in dom
    assert "CONSOLE" not in said, said
    look_at_text(source, HEADINGS)
