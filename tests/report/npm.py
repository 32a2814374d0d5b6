"""Packages of the npm registry as they are published: fetched once by exact version, refused
unless their sha512 is the one that is written here, kept below build/npm. Nothing of them
runs while they are unpacked, and npm itself is not needed."""

import base64
import hashlib
import io
import os
import shutil
import tarfile
import tempfile
import unittest
import urllib.request

KEEP = os.path.join(os.path.dirname(os.path.abspath(os.environ.get("BUILD", "build/release"))),
                    "npm")
PACKAGES = {
    "speedscope": ("1.25.0", "cpf9HWTZf1ijLXBJrk87Ve/54tnYx6rlf0gUThvn3ook6h63hLXVOQiMf44PT"
                             "+XoV503cPfvfiT5gP5vojp6Ag=="),
    "pprof-format": ("2.3.2", "fcMM+sgKMOveSurz7i0BMHfy1hHNnI9+VWjd4kdclqQjSTuiHWaP69DGwvkw3"
                              "zcLkM/F76LhVIKvPyrxmp6iiw=="),
}
LIMIT_S = 60


def download(name, version):
    url = "https://registry.npmjs.org/%s/-/%s-%s.tgz" % (name, name, version)
    failure = None
    for _ in range(3):
        try:
            with urllib.request.urlopen(url, timeout=LIMIT_S) as answer:
                return answer.read()
        except OSError as error:
            failure = error
    raise unittest.SkipTest("%s cannot be fetched: %s" % (url, failure))


def unpack(data, directory):
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as archive:
        for member in archive.getmembers():
            path = os.path.normpath(member.name)
            if not member.isfile() or path.startswith(("/", "..")):
                continue
            target = os.path.join(directory, path.split("/", 1)[1])
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target, "wb") as file:
                shutil.copyfileobj(archive.extractfile(member), file)


def package(name):
    """The directory of the unpacked package."""
    version, integrity = PACKAGES[name]
    directory = os.path.join(KEEP, "%s-%s" % (name, version))
    if os.path.isdir(directory):
        return directory
    data = download(name, version)
    if hashlib.sha512(data).digest() != base64.b64decode(integrity):
        raise AssertionError("%s %s is not what it was: its sha512 differs" % (name, version))
    os.makedirs(KEEP, exist_ok=True)
    fresh = tempfile.mkdtemp(dir=KEEP)
    unpack(data, fresh)
    os.chmod(fresh, 0o755)
    try:
        os.rename(fresh, directory)  # whole or not at all, also beside another test
    except OSError:
        shutil.rmtree(fresh)
    return directory
