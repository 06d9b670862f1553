"""Examples of the pages run, in a folder of their own, in the order in which a reader meets them."""

import contextlib
import doctest
import io
import re
import shlex
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

import chicle
from chicle import Records, Schema
from chicle.cli import main
from chicle.cli.entry import parser
from chicle.codecs import Codec
from chicle.columns import TYPES, registry
from chicle.mechanisms import BY_NAME
from chicle.models import base
from chicle.releases import unmeasured
from chicle.schema.schema import _KEYS
from chicle.sources import check_table, decode_table, read_records

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md")))]
MADE = {"docs/demo-dossier.md"}
"""Pages that a command writes: their examples have placeholders."""
ELSEWHERE = {"ui": "tests/browser", "audit": "tests/privacy/test_audit.py", "papers": "tests/unit/test_papers.py"}
"""Commands that take minutes or do not end, and where they run in short."""
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$|^    (chicle [^\n]*)$", re.DOTALL | re.MULTILINE)


def blocks(page: str) -> Iterator[tuple[str, str]]:
    """The examples of a page: ``python``, ``yaml``, ``text`` for what an example prints, ``chicle`` for a command."""
    for kind, text, command in _BLOCK.findall((ROOT / page).read_text(encoding="utf-8")):
        if kind == "bash":
            yield from (("chicle", line) for line in text.splitlines())
        elif command or kind:
            yield ("chicle", command) if command else (kind, text)


def run(kind: str, text: str, scope: dict[str, object]) -> None:
    if kind == "python":
        exec(compile(text, "example", "exec"), scope)  # noqa: S102 - our own pages
    elif kind == "yaml":
        name = re.match(r"# (\S+)", text)
        assert name, "a schema in a page begins with the name of its file"
        Path(name[1]).write_text(text, encoding="utf-8")
    else:
        told = shlex.split(text, comments=True)[1:]
        if told[0] in ELSEWHERE:
            parser().parse_args(told)
            return
        assert main(told) == 0, text
        if told[:2] == ["schema", "draft"]:
            # The reader is told to review it.
            Schema.load(told[4]).mark_reviewed("the questionnaire").save(told[4])


def _write_files(folder: Path) -> None:
    """What a reader of a page has: tables of two years, and a steward's pair of keys."""
    for name, seed in (("people.csv", 0), ("last-year.csv", 1)):
        census = chicle.datasets.census(2_000, d=5, seed=seed)
        rows = zip(*(census[name] for name in census.domain), strict=True)
        lines = [",".join(census.domain), *(",".join(map(str, row)) for row in rows)]
        (folder / name).write_text("\n".join(lines), encoding="utf-8")
    key = Ed25519PrivateKey.generate()
    plain = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (folder / "steward.pem").write_bytes(plain)
    (folder / "steward-public.pem").write_bytes(public)


@pytest.fixture
def registries() -> Iterator[None]:
    """What a page registers is forgotten after it."""
    held = (registry._types, registry._aliases, BY_NAME, base._FAMILIES, unmeasured._MECHANISMS)
    with contextlib.ExitStack() as stack:
        for known in held:
            stack.enter_context(patch.dict(known))
        yield


@pytest.mark.usefixtures("registries")
@pytest.mark.parametrize("page", [page for page in PAGES if page not in MADE])
def test_examples_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    scope: dict[str, object] = {}
    said = ""
    told = (ROOT / page).read_text(encoding="utf-8")
    if 'to_csv("people.csv"' not in told:
        _write_files(tmp_path)
        if "chicle schema draft people.csv" not in told:
            draft = chicle.draft_schema(str(tmp_path / "people.csv"))
            draft.mark_reviewed("the questionnaire").save(tmp_path / "people.yaml")
    for kind, text in blocks(page):
        if kind == "text":
            assert doctest.OutputChecker().check_output(text, said, FLAGS), f"wanted:\n{text}\ngot:\n{said}"
            continue
        with contextlib.redirect_stdout(io.StringIO()) as out:
            run(kind, text, scope)
        said = out.getvalue()


def test_pages_have_examples() -> None:
    found = {page: [kind for kind, _ in blocks(page)] for page in PAGES}
    assert {"python", "chicle"} <= set(found["README.md"])
    assert {"python", "chicle", "yaml"} <= set(found["docs/tutorial.md"])
    assert sum(map(len, found.values())) > 20


@pytest.mark.parametrize("page", [*PAGES, "examples/README.md", "PRIVACY.md"])
def test_links_lead_somewhere(page: str) -> None:
    here = (ROOT / page).parent
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", (ROOT / page).read_text(encoding="utf-8")):
        assert (here / target).exists(), target


REFERENCE = [text for kind, text in blocks("docs/schema.md") if kind == "yaml"]


@pytest.mark.parametrize("text", REFERENCE, ids=[text.split()[1] for text in REFERENCE])
def test_schemas_of_the_reference_make_tables_that_fit(text: str, tmp_path: Path) -> None:
    (tmp_path / "schema.yaml").write_text(text, encoding="utf-8")
    schema = Schema.load(tmp_path / "schema.yaml")
    assert Schema.from_dict(schema.to_dict()) == schema
    rng = np.random.default_rng(0)
    rows = {name: rng.integers(size, size=500) for name, size in Codec(schema).domain.items()}
    records = Codec(schema).restore(Records(rows, Codec(schema).domain), (), rng)
    table = decode_table(records, Codec(schema), rng=rng)
    assert check_table(table, schema, synthetic=True).fits
    again = read_records(table, schema, synthetic=True)
    for name in schema.domain:
        np.testing.assert_array_equal(again[name], records[name])


def test_the_reference_has_every_type_and_option() -> None:
    page = (ROOT / "docs/schema.md").read_text(encoding="utf-8")
    examples = "\n".join(REFERENCE)
    for column in TYPES.values():
        said = f"{column.implied_by}:" if column.implied_by is not None else f"type: {column.type}"
        assert column.type == "open" or said in examples, column.type
        for option in fields(column):
            if option.name == "kind":  # written as the type of the values
                continue
            assert f"{option.name}:" in examples or f"`{option.name}`" in page, option.name
    for key in (*_KEYS, "forbid", "if", "then", "allow", "combinations", "others", "violations", "not"):
        assert f"{key}:" in examples, key
