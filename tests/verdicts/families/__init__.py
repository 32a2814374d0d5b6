"""One file for each family of cases."""

import importlib

NAMES = ("native", "python", "go", "rust", "java", "other", "processes", "files", "parallel", "databases", "servers", "healthy")
for name in NAMES:
    importlib.import_module("families." + name)
