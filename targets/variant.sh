#!/bin/sh
# variant.sh NAME PROGRAM OBJCOPY NM XZ: writes PROGRAM without symbols to NAME in the current
# directory. For NAMEs ending in _debuglink the symbols are in NAME.debug, for _minidebug in
# .gnu_debugdata.
set -eu
name=$1 program=$2 objcopy=$3 nm=$4 xz=$5
case $name in
*_stripped)
	"$objcopy" --strip-all "$program" "$name"
	;;
*_debuglink)
	"$objcopy" --only-keep-debug "$program" "$name.debug"
	"$objcopy" --strip-all --add-gnu-debuglink="$name.debug" "$program" "$name"
	;;
*_minidebug)
	"$nm" --defined-only --format=posix "$program" |
		awk '$2 == "T" || $2 == "t" { print $1 }' >"$name.keep"
	"$objcopy" --only-keep-debug "$program" "$name.full"
	"$objcopy" --strip-debug --keep-symbols="$name.keep" "$name.full" "$name.mini"
	"$xz" --force "$name.mini"
	"$objcopy" --strip-all --add-section ".gnu_debugdata=$name.mini.xz" "$program" "$name"
	rm -f "$name.keep" "$name.full" "$name.mini.xz"
	;;
esac
