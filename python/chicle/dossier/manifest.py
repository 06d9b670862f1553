"""The manifest of a dossier: digests of its files, of the release and of the program, and a signature if wanted.

The signature is a plain ed25519 signature of the bytes of `manifest.json`, in base64. Anyone can check it by
``openssl pkeyutl -verify -pubin -inkey public-key.pem -rawin -in manifest.json -sigfile SIGNATURE``, with the decoded
signature. The steward's public key must reach readers by another way than the dossier.
"""

from __future__ import annotations

import base64
import hashlib
import json
import platform
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path
from typing import Any

from chicle._core import __version__
from chicle.errors import ParameterError, PrivacyError

__all__ = ["MANIFEST", "check_signature", "digest_of", "manifest_of", "program", "sign", "signing_key"]

MANIFEST, SIGNATURE, PUBLIC_KEY = "manifest.json", "manifest.json.sig", "public-key.pem"

_INSTALL = "signatures need the package cryptography: pip install 'chicle[sign]'"
_HOW = "make one by `openssl genpkey -algorithm ed25519 -out steward.pem`"


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file."""
    total = hashlib.sha256()
    with path.open("rb") as file:
        while part := file.read(2**20):
            total.update(part)
    return total.hexdigest()


def program() -> dict[str, str]:
    """Return the versions of the program and a digest of all of its files."""
    root = Path(str(files("chicle")))
    total = hashlib.sha256()
    for path in sorted(path for path in root.rglob("*") if path.suffix in (".py", ".so", ".pyd", ".css")):
        total.update(path.relative_to(root).as_posix().encode() + b"\0" + digest_of(path).encode() + b"\n")
    packages = {name: _version(name) for name in ("numpy", "pyarrow", "pyyaml", "dp-accounting", "cryptography")}
    return {
        "chicle": __version__,
        "sha256 of all files of chicle": total.hexdigest(),
        "python": f"{platform.python_version()} ({sys.implementation.name})",
        "system": f"{platform.system()} {platform.machine()}",
        **packages,
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def manifest_of(release: Path, folder: Path, names: Sequence[str]) -> bytes:
    """Return the manifest of some files in a folder, and of the release that they are about."""
    told = {
        "kind": "chicle dossier",
        "format": 1,
        "release": {"name": release.name, "sha256": digest_of(release)},
        "files": {name: digest_of(folder / name) for name in sorted(names)},
        "program": program(),
    }
    return (json.dumps(told, indent=1, ensure_ascii=False) + "\n").encode()


def signing_key(path: str | Path) -> Any:  # noqa: ANN401 - cryptography is optional
    """Return the private key in a file; one that cannot sign is an error, before anything is written."""
    ed25519, serialization = _cryptography()
    try:
        key = serialization.load_pem_private_key(Path(path).read_bytes(), password=None)
    except (OSError, ValueError, TypeError):
        raise ParameterError(f"{path} is no readable private key without a password; {_HOW}") from None
    if not isinstance(key, ed25519.Ed25519PrivateKey):
        raise ParameterError(f"{path} is no ed25519 key; {_HOW}")
    return key


def sign(folder: Path, text: bytes, key: Any) -> None:  # noqa: ANN401
    """Write the signature of a manifest, and the public key that checks it, into a folder."""
    _, serialization = _cryptography()
    (folder / SIGNATURE).write_bytes(base64.b64encode(key.sign(text)) + b"\n")
    (folder / PUBLIC_KEY).write_bytes(
        key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )


def check_signature(folder: Path, text: bytes, key: str | Path | None) -> str | None:
    """Return whose signature a manifest has, or None if it has none and none was asked for; a wrong one is an error."""
    if not (folder / SIGNATURE).exists():
        if key is None:
            return None
        raise PrivacyError("it has no signature, but a key was given to check one; ask the steward to sign")
    ed25519, serialization = _cryptography()
    own = key is None
    place = folder / PUBLIC_KEY if key is None else Path(key)
    try:
        public = serialization.load_pem_public_key(place.read_bytes())
        signature = base64.b64decode((folder / SIGNATURE).read_bytes(), validate=False)
    except (OSError, ValueError):
        raise ParameterError(f"{place} is no readable public key; give the steward's, as PEM") from None
    if not isinstance(public, ed25519.Ed25519PublicKey):
        raise ParameterError(f"{place} is no ed25519 key; give the steward's")
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - it is optional

    try:
        public.verify(signature, text)
    except InvalidSignature:
        raise PrivacyError(
            "its signature is not that of this key; the dossier was changed, or signed by another"
        ) from None
    if own:
        return "by the key beside it, which proves nothing about whose it is: give --key from a source that you trust"
    return f"by the key in {place}"


def _cryptography() -> tuple[Any, Any]:
    try:
        from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - it is optional
        from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: PLC0415
    except ImportError:
        raise ParameterError(_INSTALL) from None
    return ed25519, serialization
