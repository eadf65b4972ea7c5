"""Every relative link and anchor in README and docs leads somewhere; every page is in the site's navigation."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from pagetext import DOCS, PAGES, ROOT, read, slug

IDS = [str(path.relative_to(ROOT)) for path in PAGES]


@pytest.mark.parametrize("path", PAGES, ids=IDS)
def test_every_relative_link_of_a_page_leads_somewhere(path: Path) -> None:
    broken = []
    for line, target in read(path).links:
        if target.startswith(("http://", "https://", "mailto:")):
            continue
        name, _, anchor = target.partition("#")
        file = path if not name else path.parent / name
        if not file.exists():
            broken.append(f"{path.name}:{line}: {target}: no such file")
        elif anchor and file.suffix == ".md" and anchor not in read(file).anchors:
            broken.append(f"{path.name}:{line}: {target}: no such heading; there are {sorted(read(file).anchors)}")
    assert not broken, "\n".join(broken)


@pytest.mark.parametrize("path", PAGES[1:], ids=IDS[1:])
def test_a_page_of_the_site_links_to_nothing_outside_of_it(path: Path) -> None:
    outside = [
        f"{path.name}:{line}: {target}"
        for line, target in read(path).links
        if not target.startswith(("http", "#")) and not (path.parent / target).resolve().is_relative_to(DOCS)
    ]
    assert not outside, "name such files as `code`:\n" + "\n".join(outside)


def _pages_of(nav: object) -> list[str]:
    if isinstance(nav, str):
        return [nav]
    return [page for part in (nav.values() if isinstance(nav, dict) else nav) for page in _pages_of(part)]


def test_the_navigation_names_every_page_once_and_no_other() -> None:
    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    assert sorted(_pages_of(config["nav"])) == sorted(path.name for path in DOCS.glob("*.md"))


def test_anchors_are_made_as_github_makes_them() -> None:
    assert slug("`job.step(n)`: what it costs, and *why*") == "jobstepn-what-it-costs-and-why"
    assert slug("The [guard](guard.md)") == "the-guard"
