"""What the site has beside docs/: files of the repository, the commands and the notebook, as pages, for mkdocs.yml.

Pages link to files as in the repository; here the links that leave docs/ are turned to where the site has the file.
"""

import argparse
import json
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

from chicle.cli.entry import parser

ROOT = Path(__file__).resolve().parents[1]
PAGES = {
    "PRIVACY.md": "PRIVACY.md",
    "SECURITY.md": "SECURITY.md",
    "CHANGELOG.md": "CHANGELOG.md",
    "examples/README.md": "examples.md",
}
NOTEBOOK = "examples/first-steps.ipynb"
MOST_LINES = 40  # of what a cell prints


def on_files(files: Files, config: Any) -> Files:  # noqa: ANN401 - mkdocs
    """Add the pages that are made, and the files that they show."""
    made = {to: _at_root((ROOT / name).read_text(encoding="utf-8"), name) for name, to in PAGES.items()}
    made["notebook.md"] = _notebook()
    for to, text in made.items():
        files.append(File.generated(config, to, content=text))
    for path in sorted((ROOT / "examples").glob("*.yaml")):
        files.append(File.generated(config, f"examples/{path.name}", abs_src_path=str(path)))
    files.append(File.generated(config, "ui/icon.svg", abs_src_path=str(ROOT / "python/chicle/ui/static/icon.svg")))
    files.append(File.generated(config, NOTEBOOK, abs_src_path=str(ROOT / NOTEBOOK)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:  # noqa: ANN401 - mkdocs
    """Turn links that leave docs/ to the pages of the site."""
    if page.file.src_uri in PAGES.values():
        return markdown
    if page.file.src_uri == "reference/commands.md":
        return markdown + _commands()
    for name, to in PAGES.items():
        markdown = markdown.replace(f"](../{name}", f"]({to}")
    notebook = NOTEBOOK if page.file.src_uri == "notebook.md" else "notebook.md"
    return markdown.replace("](../README.md", "](index.md").replace(f"](../{NOTEBOOK}", f"]({notebook}")


def _at_root(text: str, name: str) -> str:
    """Return a file of the repository with its links seen from the root of the site."""
    folder = Path(name).parent

    def turned(found: re.Match[str]) -> str:
        target = found[1]
        if re.match(r"https?:|#", target):
            return found[0]
        path, sharp, anchor = target.partition("#")
        place = (ROOT / folder / path).resolve().relative_to(ROOT).as_posix()
        if place in PAGES:
            return f"]({PAGES[place]}{sharp}{anchor})"
        if place.startswith("docs/"):
            return f"]({place.removeprefix('docs/')}{sharp}{anchor})"
        return f"]({place}{sharp}{anchor})" if place.startswith("examples/") else "](index.md)"

    return re.sub(r"\]\(([^)\s]+)\)", turned, text)


def _commands() -> str:
    """Return the help of every command."""
    lines = [""]
    todo: list[tuple[argparse.ArgumentParser, int]] = [(parser(), 2)]
    while todo:
        one, level = todo.pop(0)
        below = [action for action in one._actions if isinstance(action, argparse._SubParsersAction)]  # noqa: SLF001
        lines += [f"{'#' * level} {one.prog}", "", "```text", one.format_help().rstrip(), "```", ""]
        todo[:0] = [(child, min(level + 1, 4)) for action in below for child in action.choices.values()]
    return "\n".join(lines)


def _notebook() -> str:
    """Return the executed notebook as a page: its texts, its code, and what it printed."""
    cells = json.loads((ROOT / NOTEBOOK).read_text(encoding="utf-8"))["cells"]
    parts = []
    for cell in cells:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        parts += [_output(output) for output in cell["outputs"]]
    link = f"*This page is [a notebook](../{NOTEBOOK}) that was run as it stands.*"
    return "\n\n".join([parts[0], link, *parts[1:]]) + "\n"


def _output(output: dict[str, Any]) -> str:
    data = output.get("data", {})
    if "text/html" in data:
        return '<div class="result">' + "".join(data["text/html"]).replace("\n", " ") + "</div>"
    if "image/png" in data:
        picture = "".join(data["image/png"]).strip()
        return f'<img alt="A picture that the cell draws" src="data:image/png;base64,{picture}">'
    said = "".join(output.get("text", data.get("text/plain", "")))
    return "```text\n" + "\n".join(said.rstrip().splitlines()[:MOST_LINES]) + "\n```"
