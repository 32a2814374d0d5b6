#!/bin/sh
# chain.sh COUNT SOURCE COMPILER: builds the libraries of dlchain in chain/ of the current
# directory.
set -eu
count=$1 source=$2 compiler=$3
mkdir -p chain
rm -f chain/complete
seq 0 $((count - 1)) | xargs -P "$(nproc)" -I @ "$compiler" -shared -fPIC -O2 -g0 \
	-fno-optimize-sibling-calls -nostartfiles -Wl,--build-id -DINDEX=@ \
	-o chain/libchain_@.so "$source"
touch chain/complete
