"""Debian's kernels: finds their packages with apt, in lists of its own, and unpacks them. The settings of
the system's apt (proxies, keys) are used, and nothing of the system is changed."""

import functools
import glob
import lzma
import os
import re
import shutil
import subprocess

MIRROR = "http://deb.debian.org/debian"
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"

# name: suite, and the package that depends on the newest one
KERNELS = {
    "5.10": ("bullseye", "linux-image-amd64"),
    "6.1": ("bookworm", "linux-image-amd64"),
    "6.1-rt": ("bookworm", "linux-image-rt-amd64"),
    "6.1-cloud": ("bookworm", "linux-image-cloud-amd64"),
    "6.12": ("trixie", "linux-image-amd64"),
    "backports": ("trixie-backports", "linux-image-amd64"),
    "unstable": ("sid", "linux-image-amd64"),
    "aarch64": ("bookworm", "linux-image-arm64"),
}

# Not of this processor: ./dev unpacks the kernel with the programs that tests need, as a root directory.
FOREIGN = "aarch64"

OF_SETTINGS = "6.1"  # where the settings of checks.py are tried, too

# What a root directory of the host needs, and what tests use.
MODULES = ["virtio_pci", "virtio_rng", "9pnet_virtio", "9p", "virtiofs", "overlay", "fuse", "unix_diag", "inet_diag",
           "tcp_diag", "udp_diag", "af_packet"]


class Apt:
    def __init__(self, directory):
        self.directory = directory
        self.options = ["-q", "-o", "Acquire::Retries=3", "-o", "APT::Sandbox::User=root",
                        "-o", "Acquire::GzipIndexes=false", "-o", "Acquire::Languages=none",
                        "-o", "Dir::Etc::sourcelist=" + os.path.join(directory, "sources.list"),
                        "-o", "Dir::Etc::sourceparts=/dev/null",
                        "-o", "Dir::Etc::preferencesparts=/dev/null",
                        "-o", "Dir::State=" + directory,
                        "-o", "Dir::State::status=" + os.path.join(directory, "status"),
                        "-o", "Dir::Cache=" + os.path.join(directory, "cache")]

    def update(self, suites):
        for name in ("lists/partial", "cache/archives/partial"):
            os.makedirs(os.path.join(self.directory, name), exist_ok=True)
        with open(os.path.join(self.directory, "status"), "w", encoding="ascii"):
            pass
        with open(os.path.join(self.directory, "sources.list"), "w", encoding="ascii") as file:
            for suite in suites:
                file.write("deb [signed-by=%s arch=amd64] %s %s main\n" % (KEYS, MIRROR, suite))
        subprocess.run(["apt-get", *self.options, "update"], check=True, stdout=subprocess.DEVNULL)

    def stanza(self, suite, package):
        """What the lists of a suite say about a package; None: it has none."""
        for path in glob.glob(os.path.join(self.directory, "lists",
                                           "*_dists_%s_main_binary-amd64_Packages" % suite)):
            with open(path, encoding="utf-8") as file:
                found = re.search(r"^Package: %s\n(?:.+\n)*" % re.escape(package), file.read(), re.M)
            if found:
                return dict(re.findall(r"^([\w-]+): (.*)$", found[0], re.M))
        return None

    def download(self, package, version, directory):
        subprocess.run(["apt-get", *self.options, "download", "%s=%s" % (package, version)],
                       cwd=directory, check=True, stdout=subprocess.DEVNULL)
        return glob.glob(os.path.join(directory, package + "_*.deb"))[0]


def fetch(directory, names, say):
    """Brings the newest version of these kernels below directory; one that is there already stays."""
    apt = Apt(os.path.join(directory, "apt"))
    apt.update(sorted({KERNELS[name][0] for name in names}))
    for name in names:
        if name == FOREIGN:
            continue
        suite, package = KERNELS[name]
        meta = apt.stanza(suite, package)
        found = meta and re.search(r"\blinux-image-(\d\S*)", meta["Depends"])
        image = found and apt.stanza(suite, found[0])
        if not image:
            say("%s: %s has no %s" % (name, suite, package))
            continue
        place = os.path.join(directory, "kernels", name)
        stamp = os.path.join(place, image["Version"])
        if os.path.exists(stamp):
            continue
        say("%s: %s %s" % (name, found[0], image["Version"]))
        shutil.rmtree(place, ignore_errors=True)
        os.makedirs(place)
        for part in ("image", "binary", "modules"):  # one package, or one for each since Linux 7.2
            name_of_part = "linux-%s-%s" % (part, found[1])
            if apt.stanza(suite, name_of_part):
                package = apt.download(name_of_part, image["Version"], place)
                subprocess.run(["dpkg", "-x", package, place], check=True)
                os.unlink(package)
        with open(stamp, "w", encoding="ascii"):
            pass


class Kernel:
    """An unpacked package."""

    def __init__(self, directory, name):
        self.name = name
        self.place = (os.path.join(directory, name, "root") if name == FOREIGN else
                      os.path.join(directory, "kernels", name))
        self.image = ([path for pattern in ("boot/vmlinuz-*", "usr/lib/modules/*/vmlinuz")
                       for path in glob.glob(os.path.join(self.place, pattern))] or [None])[0]

    @functools.cached_property
    def modules(self):
        """The modules and what they depend on, in the order in which they are loaded: names and
        contents."""
        paths = {}
        for pattern in ("lib", "usr/lib"):
            for path in glob.glob(os.path.join(self.place, pattern, "modules", "*", "kernel", "**", "*.ko*"),
                                  recursive=True):
                paths[os.path.basename(path).split(".")[0].replace("-", "_")] = path
        loaded = {}

        def load(name):
            if name in loaded or name not in paths:  # or it is built in
                return
            with open(paths[name], "rb") as file:
                content = file.read()
            if paths[name].endswith(".xz"):
                content = lzma.decompress(content)
            elif paths[name].endswith(".zst"):
                content = subprocess.run(["zstd", "-dc"], input=content, stdout=subprocess.PIPE,
                                         check=True).stdout
            needed = re.search(rb"\0depends=([^\0]*)\0", content)
            for other in needed[1].decode().split(",") if needed else ():
                load(other.replace("-", "_"))
            loaded[name] = content
        for name in MODULES:
            load(name)
        return loaded
