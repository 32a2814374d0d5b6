"""npm packages that tests use: they check the output of stacksnap report, or are looked at. "./dev test" runs this file
to download them into build/npm; the tests download nothing, and skip without the packages.
Each package must have the sha512 given here. Unpacking executes nothing of it and does not
need npm."""

import base64
import hashlib
import io
import os
import platform
import shutil
import tarfile
import tempfile
import unittest
import urllib.request

KEEP = os.path.join(os.path.dirname(os.path.abspath(os.environ.get("BUILD", "build/release"))),
                    "npm")
PACKAGES = {
    # finds what makes a page hard to use without a mouse or without seeing it
    "axe-core": ("4.14.1", "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFN"
                           "NtuFooJpZe37OgudVGtQ=="),
    "speedscope": ("1.25.0", "cpf9HWTZf1ijLXBJrk87Ve/54tnYx6rlf0gUThvn3ook6h63hLXVOQiMf44PT"
                             "+XoV503cPfvfiT5gP5vojp6Ag=="),
    "pprof-format": ("2.3.2", "fcMM+sgKMOveSurz7i0BMHfy1hHNnI9+VWjd4kdclqQjSTuiHWaP69DGwvkw3"
                              "zcLkM/F76LhVIKvPyrxmp6iiw=="),
}
DUCKDB = {  # to be found by each other in a directory node_modules
    "@duckdb/node-api": ("1.5.6-r.1", "yIPol6P4EQmsAUsb27donJf7iADrM31Ei/WkvhkZpSscjhEErYsuF19lsJ/qz5m"
                                      "UWxsKFQpLdjvrlhPQnMTBqw=="),
    "@duckdb/node-bindings": ("1.5.6-r.1", "/pWlTyvKC1d16iSMJCBAPwlmzoeXRs5Y9cqG+TpKd/YAW6Ke05FJg099v"
                                           "/Im2bkS9BgznNyNcAK1NxA1eQhSUw=="),
    "@duckdb/node-bindings-linux-x64": ("1.5.6-r.1", "IXcrZJE6kEqM0Z4wwdVnGBHX/frOS33VPNAwDXQ/Q+Fs84b0"
                                                     "58Qe94chrCCIcNJlG8Y3UHIUU4eBeCQxW5mN1Q=="),
    "detect-libc": ("2.1.2", "Btj2BOOO83o3WyH59e8MgXsxEQVcarkUOpEYrubB0urwnN10yQ364rsiByU11nZlqW"
                             "YZm05i/of7io4mzihBtQ=="),
}
if platform.machine() == "x86_64":
    PACKAGES.update(DUCKDB)
    # A program of a recent Go, without symbols and without its version
    PACKAGES["@esbuild/linux-x64"] = (
        "0.28.2", "4xTZr1FUmSoQW4XIWmit3tzQrUTZM+N3P0XV8xROKYF50XfI7xeO90+1bZvNwxIufQ9hDQVRJH5YhgPVF8A/HQ==")
LIMIT_S = 60


def download(name, version):
    url = "https://registry.npmjs.org/%s/-/%s-%s.tgz" % (name, os.path.basename(name), version)
    failure = None
    for _ in range(3):
        try:
            with urllib.request.urlopen(url, timeout=LIMIT_S) as answer:
                return answer.read()
        except OSError as error:
            failure = error
    raise OSError("cannot download %s: %s" % (url, failure))


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


def directory_of(name):
    return os.path.join(KEEP, "%s-%s" % (name.replace("/", "+"), PACKAGES[name][0]))


def package(name):
    """The directory of the unpacked package; skips the test if it is not there."""
    directory = directory_of(name)
    if not os.path.isdir(directory):
        raise unittest.SkipTest("npm package %s is missing: run tests/report/npm.py" % name)
    return directory


def fetch(name):
    version, integrity = PACKAGES[name]
    data = download(name, version)
    if hashlib.sha512(data).digest() != base64.b64decode(integrity):
        raise SystemExit("%s %s has another sha512 than expected" % (name, version))
    os.makedirs(KEEP, exist_ok=True)
    fresh = tempfile.mkdtemp(dir=KEEP)
    unpack(data, fresh)
    os.chmod(fresh, 0o755)
    os.rename(fresh, directory_of(name))  # atomic, so that it is there as a whole or not


def main():
    for name in PACKAGES:
        if os.path.isdir(directory_of(name)):
            continue
        try:
            fetch(name)
            print("downloaded npm package %s into %s" % (name, KEEP))
        except OSError as error:
            print("%s; tests that need it will be skipped" % error)


if __name__ == "__main__":
    main()
