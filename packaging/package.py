"""Makes the packages of this tree: package.py DIRECTORY UNWIND. ./dev has built libunwind with prefix UNWIND,
and put arm64 packages into build/aarch64/root.

Two builds are equal bit for bit: archives are sorted, owners and times are fixed, and no path of the
build is in a file. SOURCE_DATE_EPOCH is the time of the files (default: that of the last commit)."""

import base64
import glob
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SUMMARY = "The stacks of every thread of a running process"
# Names of a processor: of Node.js, of OCI, and options of CMake.
PROCESSORS = {"x86_64": ("x64", "amd64", []),
              "aarch64": ("arm64", "arm64", ["-DCMAKE_TOOLCHAIN_FILE=%s/src/aarch64.cmake" % ROOT])}


def run(*command, **options):
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=sys.stderr, **options)


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT).stdout


def read(path, mode="r"):
    with open(path, mode, **({} if "b" in mode else {"encoding": "utf-8"})) as file:
        return file.read()


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())


def version():
    return re.search(r"^project\(stacksnap VERSION ([\d.]+)", read(ROOT + "/CMakeLists.txt"), re.M)[1]


# Archives --------------------------------------------------------------------------------

def files_of(tree):
    """The files of a tree with their paths in it, sorted."""
    return sorted((os.path.relpath(os.path.join(directory, name), tree), os.path.join(directory, name))
                  for directory, _, names in os.walk(tree) for name in names)


def mode_of(path):
    return 0o755 if os.access(path, os.X_OK) else 0o644


def tar(members, directories=()):
    """members: path in the archive, data or the path of a file, and the mode; directories: path and mode."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, mode in directories:
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode, entry.mtime = tarfile.DIRTYPE, mode, EPOCH
            archive.addfile(entry)
        for name, source, mode in members:
            data = source if isinstance(source, bytes) else read(source, "rb")
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode, entry.mtime = len(data), mode, EPOCH
            archive.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def compress(data):
    return gzip.compress(data, 9, mtime=0)


def renamed(tree, prefix):
    return [(prefix + name, path, mode_of(path)) for name, path in files_of(tree)]


# The tree of the static binary -----------------------------------------------------------

def licences(link_map):
    """The licences of all that is linked in, as the packages of these archives have them."""
    archives = set(re.findall(r"^(/\S+\.a)\(", read(link_map).split("Discarded input")[0], re.M))
    packages, texts = set(), []
    for path in sorted(os.path.realpath(path) for path in archives):
        if path.endswith("/libstacksnap.a"):
            continue
        if "/aarch64/root/" in path:  # the same packages are installed here
            path = path.split("/aarch64/root")[1].replace("aarch64", "x86_64")
        if path.startswith("/usr/"):
            packages.add(output("dpkg-query", "--search", path).split(":")[0])
        else:  # libunwind.a of ./dev
            texts.append(("libunwind", os.path.join(os.path.dirname(path), "../../source/COPYING")))
    texts += [(name, "/usr/share/doc/%s/copyright" % name) for name in packages | {"libxxhash-dev"}]
    texts += [(name, "/usr/share/common-licenses/" + name) for name in ("LGPL-2.1", "LGPL-3", "GPL-2", "GPL-3")]
    return "".join("%s\n%s\n\n%s\n\n" % (name, "=" * len(name), read(path)) for name, path in sorted(texts))


def static_tree(work, processor, unwind):
    """Returns the directory of the tree with bin/ and share/, and the debug file."""
    build, tree = "%s/static-%s" % (work, processor), "%s/tree-%s" % (work, processor)
    run("cmake", "-S", ROOT, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DSS_STATIC=ON",
        "-DSS_TESTS=OFF", "-DCMAKE_C_FLAGS=-ffile-prefix-map=%s=build -ffile-prefix-map=%s=." % (build, ROOT),
        "-DCMAKE_INSTALL_PREFIX=/usr", "-DSS_STATIC_UNWIND=" + unwind, *PROCESSORS[processor][2])
    run("cmake", "--build", build, "--target", "stacksnap_alone", "completions")
    for component in ("tool", "licence"):
        run("cmake", "--install", build, "--prefix", tree, "--component", component)
    shutil.copy(build + "/static/stacksnap", tree + "/bin/stacksnap")
    write(tree + "/share/doc/stacksnap/third-party", licences(build + "/static/stacksnap.map"))
    shutil.copy(ROOT + "/CHANGELOG.md", tree + "/share/doc/stacksnap")
    return tree, build + "/static/stacksnap.debug"


def tarballs(out, tree, debug, processor):
    name = "stacksnap-%s-linux-%s" % (VERSION, processor)
    write(out + "/" + name + ".tar.gz", compress(tar(renamed(tree, name + "/"))))
    build_id = re.search("Build ID: (.*)", output("readelf", "--notes", tree + "/bin/stacksnap"))[1]
    member = "lib/debug/.build-id/%s/%s.debug" % (build_id[:2], build_id[2:])
    write(out + "/" + name + "-debug.tar.gz", compress(tar([(member, debug, 0o644)])))


# Packages of it --------------------------------------------------------------------------

def documents(tree):
    return [(os.path.basename(path), path) for _, path in files_of(tree + "/share/doc/stacksnap")]


def npm(out, trees):
    names = [PROCESSORS[processor][0] for processor in trees]
    about = {"name": "stacksnap", "version": VERSION, "description": SUMMARY, "license": "SEE LICENSE IN LICENSE",
             "bin": {"stacksnap": "bin/stacksnap"}, "os": ["linux"], "cpu": names}
    members = [("package/package.json", json.dumps(about, indent=1).encode(), 0o644),
               ("package/README.md", ROOT + "/README.md", 0o644),
               ("package/bin/stacksnap", ROOT + "/packaging/npm/stacksnap", 0o755),
               *(("package/bin/stacksnap-" + processor, tree + "/bin/stacksnap", 0o755) for processor, tree in trees.items()),
               *(("package/" + name, path, 0o644) for name, path in documents(trees["x86_64"]))]
    write(out + "/stacksnap-%s.tgz" % VERSION, compress(tar(members)))


def wheel(out, tree, processor):
    tags = [tag + processor for tag in ("manylinux_2_17_", "musllinux_1_1_")]
    info = "stacksnap-%s.dist-info/" % VERSION
    members = [("stacksnap-%s.data/scripts/stacksnap" % VERSION, read(tree + "/bin/stacksnap", "rb"), 0o755),
               ("stacksnap_pytest.py", read(ROOT + "/packaging/python/stacksnap_pytest.py", "rb"), 0o644)]
    texts = {"METADATA": "Metadata-Version: 2.1\nName: stacksnap\nVersion: %s\nSummary: %s\nLicense: MIT\n"
                         "Description-Content-Type: text/markdown\n\n%s" % (VERSION, SUMMARY, read(ROOT + "/README.md")),
             "WHEEL": "Wheel-Version: 1.0\nGenerator: stacksnap\nRoot-Is-Purelib: false\n" +
                      "".join("Tag: py3-none-%s\n" % tag for tag in tags),
             "entry_points.txt": "[pytest11]\nstacksnap = stacksnap_pytest\n"}
    members += [(info + name, text.encode(), 0o644) for name, text in texts.items()]
    members += [(info + "licenses/" + name, read(path, "rb"), 0o644) for name, path in documents(tree)]
    record = ["%s,sha256=%s,%d" % (name, base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("="),
                                   len(data)) for name, data, _ in members]
    members.append((info + "RECORD", "\n".join(record + [info + "RECORD,,", ""]).encode(), 0o644))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data, mode in members:
            entry = zipfile.ZipInfo(name, time.gmtime(EPOCH)[:6])
            entry.external_attr, entry.compress_type = (0o100000 | mode) << 16, zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    write(out + "/stacksnap-%s-py3-none-%s.whl" % (VERSION, ".".join(tags)), buffer.getvalue())


def oci(out, trees):
    """Images of the binary and its licences only."""
    blobs = {}

    def blob(kind, data):
        digest = hashlib.sha256(data).hexdigest()
        blobs[digest] = data
        return {"mediaType": "application/vnd.oci.image." + kind, "digest": "sha256:" + digest, "size": len(data)}

    def text(value):
        return json.dumps(value, separators=(",", ":")).encode()

    def image(processor, tree):
        layer = tar([("usr/bin/stacksnap", tree + "/bin/stacksnap", 0o755), *renamed(tree + "/share/doc", "usr/share/doc/")],
                    [("proc", 0o555), ("tmp", 0o1777)])
        platform = {"architecture": PROCESSORS[processor][1], "os": "linux"}
        config = {"created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(EPOCH)), **platform,
                  "config": {"Entrypoint": ["/usr/bin/stacksnap"], "Env": ["PATH=/usr/bin"],
                             "Labels": {"org.opencontainers.image.version": VERSION}},
                  "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()]}}
        manifest = blob("manifest.v1+json", text({
            "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": blob("config.v1+json", text(config)),
            "layers": [blob("layer.v1.tar+gzip", compress(layer))]}))
        return {**manifest, "platform": platform}

    index = blob("index.v1+json", text({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [image(processor, tree) for processor, tree in trees.items()]}))
    index["annotations"] = {name: "localhost/stacksnap:" + VERSION for name in
                            ("org.opencontainers.image.ref.name", "io.containerd.image.name")}
    members = [("oci-layout", text({"imageLayoutVersion": "1.0.0"}), 0o644),
               ("index.json", text({"schemaVersion": 2, "manifests": [index]}), 0o644),
               *(("blobs/sha256/" + digest, data, 0o644) for digest, data in sorted(blobs.items()))]
    write(out + "/stacksnap-%s-oci.tar" % VERSION, tar(members))


def rpm(out, work, tree, processor):
    macros = {"_topdir": work + "/rpm", "version": VERSION, "tree": tree, "_rpmdir": out, "_build_id_links": "none",
              "_rpmfilename": "%{NAME}-%{VERSION}-%{RELEASE}.%{ARCH}.rpm", "_buildhost": "stacksnap",
              "use_source_date_epoch_as_buildtime": "1", "clamp_mtime_to_source_date_epoch": "1",
              "__os_install_post": "%{nil}", "debug_package": "%{nil}"}
    run("rpmbuild", "-bb", "--quiet", "--target", processor + "-linux",
        *(word for item in macros.items() for word in ("--define", "%s %s" % item)), ROOT + "/packaging/stacksnap.spec")


# Debian's --------------------------------------------------------------------------------

def sources():
    """The files of this tree, as git knows them."""
    if os.path.exists(ROOT + "/.git"):
        return output("git", "ls-files", "-z").split("\0")[:-1]
    return [name for name, _ in files_of(ROOT) if not name.startswith("build/")]


def deb(out, work):
    top = "%s/deb/stacksnap-%s" % (work, VERSION)
    for name in sources():
        if not name.startswith("packaging/"):
            os.makedirs(os.path.dirname(os.path.join(top, name)), exist_ok=True)
            shutil.copy2(os.path.join(ROOT, name), os.path.join(top, name))
    shutil.copytree(ROOT + "/packaging/debian", top + "/debian")
    maintainer = re.search("Maintainer: (.*)", read(top + "/debian/control"))[1]
    date = time.strftime("%a, %d %b %Y %H:%M:%S +0000", time.gmtime(EPOCH))
    write(top + "/debian/changelog", "stacksnap (%s) unstable; urgency=medium\n\n  * See changelog.gz.\n\n -- %s  %s\n" %
          (VERSION, maintainer, date))
    write(top + "/debian/source/format", "3.0 (native)\n")
    run("dpkg-buildpackage", "-b", "--no-sign", cwd=top)
    run("lintian", "--fail-on", "error,warning", *glob.glob(work + "/deb/*.changes"))
    for path in glob.glob(work + "/deb/*.deb"):
        shutil.copy(path, out)


def main():
    out, unwind = map(os.path.abspath, sys.argv[1:])
    work = out + "/work"
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(work)
    trees = {}
    for processor in PROCESSORS:
        trees[processor], debug = static_tree(work, processor, unwind)
        tarballs(out, trees[processor], debug, processor)
        wheel(out, trees[processor], processor)
        rpm(out, work, trees[processor], processor)
    npm(out, trees)
    oci(out, trees)
    deb(out, work)
    packages = sorted(name for name in os.listdir(out) if name != "work")
    write(out + "/SHA256SUMS", "".join("%s  %s\n" % (hashlib.sha256(read(os.path.join(out, name), "rb")).hexdigest(), name)
                                       for name in packages))
    for name in packages:
        print("%9d %s" % (os.path.getsize(os.path.join(out, name)), os.path.join(sys.argv[1], name)))


VERSION = version()
EPOCH = int(os.environ.get("SOURCE_DATE_EPOCH") or output("git", "log", "-1", "--format=%ct"))
os.environ["SOURCE_DATE_EPOCH"] = str(EPOCH)
os.environ.update(LC_ALL="C.UTF-8", TZ="UTC")
os.umask(0o022)

if __name__ == "__main__":
    main()
