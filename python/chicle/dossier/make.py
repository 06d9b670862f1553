"""Write a dossier: Markdown, one HTML page, and a manifest of their digests."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from chicle.dossier.manifest import MANIFEST, digest_of, manifest_of, sign, signing_key
from chicle.dossier.sections import dossier_of
from chicle.errors import ParameterError
from chicle.releases.release import load

__all__ = ["write_dossier"]

_PAGES = ("dossier.md", "dossier.html")


def write_dossier(
    release: str | Path,
    folder: str | Path,
    *,
    table: str = "",
    key: str | Path | None = None,
    force: bool = False,
) -> list[Path]:
    """Write the dossier of a release into a folder; return its files. All of it is safe to publish.

    Parameters
    ----------
    release
        The file that `Release.save` or `chicle synth --release` wrote.
    folder
        A new folder, or one that only has a dossier in it if `force` is given.
    table
        What the table is, for the title.
    key
        A private ed25519 key (PEM) of the steward, to sign the manifest with.
    force
        Whether to replace the files of an earlier dossier.

    Examples
    --------
    >>> import chicle, tempfile
    >>> release = chicle.Independent(epsilon=1, delta=1e-9).fit(chicle.datasets.census(2_000, d=3)).release_
    >>> with tempfile.TemporaryDirectory() as place:
    ...     release.save(f"{place}/census.chicle")
    ...     [path.name for path in write_dossier(f"{place}/census.chicle", f"{place}/dossier")]
    ['dossier.md', 'dossier.html', 'manifest.json']
    """
    source, place = Path(release), Path(folder)
    steward = None if key is None else signing_key(key)
    if place.is_file():
        raise ParameterError(f"{folder} is a file; name a folder")
    if place.exists() and any(place.iterdir()) and not force:
        raise ParameterError(f"{folder} is not empty; give --force to replace the dossier in it, or another folder")
    loaded = load(source)
    document = dossier_of(loaded, source.name, digest_of(source), table)
    try:
        place.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=place, prefix=".dossier-") as beside:
            made = Path(beside)
            (made / _PAGES[0]).write_text(document.markdown(), encoding="utf-8")
            (made / _PAGES[1]).write_text(document.html(), encoding="utf-8")
            manifest = manifest_of(source, made, _PAGES)
            (made / MANIFEST).write_bytes(manifest)
            if steward is not None:
                sign(made, manifest, steward)
            written = [path.name for path in made.iterdir()]
            for name in written:
                (made / name).replace(place / name)
    except OSError as error:
        raise ParameterError(f"{folder} cannot be written: {error.strerror}; choose another place") from None
    first = [*_PAGES, MANIFEST]
    return [place / name for name in (*first, *sorted(set(written) - set(first)))]
