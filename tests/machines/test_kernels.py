"""Each of Debian's kernels that "./dev machines" has downloaded, in a virtual machine."""
# ctest: long serial release-only timeout=30000

import os
import sys

sys.path.insert(0, os.path.join(os.environ["SOURCE"], "tests", "e2e"))

import machines  # noqa: E402

if __name__ == "__main__":
    sys.exit(machines.main(["--no-fetch"]))
