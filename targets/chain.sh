#!/bin/sh
# chain.sh COUNT SOURCE COMPILER OBJCOPY LINKER: builds the libraries of dlchain in chain/ of the current
# directory. The source is compiled once: the libraries differ in the name of their function.
set -eu
count=$1 source=$2 compiler=$3 objcopy=$4 linker=$5
mkdir -p chain
rm -f chain/complete
"$compiler" -c -fPIC -O2 -g0 -fno-optimize-sibling-calls -o chain/0.o "$source"
# shellcheck disable=SC2016 # the inner shell expands them
seq 0 $((count - 1)) | xargs -P "$(nproc)" -n 20 sh -c '
	objcopy=$1 linker=$2 && shift 2
	for i; do
		"$objcopy" --redefine-sym "chain_0=chain_$i" chain/0.o "chain/of_$i.o"
		"$linker" -shared --build-id --eh-frame-hdr -o "chain/libchain_$i.so" "chain/of_$i.o"
	done' sh "$objcopy" "$linker"
rm chain/*.o
touch chain/complete
