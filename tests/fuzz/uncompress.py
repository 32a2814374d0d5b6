#!/usr/bin/python3
"""Copies a recording without the file header and with all chunks uncompressed, so that fuzz programs
can change their contents: uncompress.py RECORDING SEED"""
import struct, subprocess, sys
with open(sys.argv[1], "rb") as file:
    data = file.read()
at, out = 16, b""
while at < len(data):
    kind, packed, stored, raw = struct.unpack_from("<4I", data, at)
    body = data[at + 24:at + 24 + stored]
    if packed:
        body = subprocess.run(["zstd", "-dc"], input=body, stdout=subprocess.PIPE,
                              check=True).stdout
    out += struct.pack("<4IQ", kind, 0, raw, raw, 0) + body
    at += 24 + stored
with open(sys.argv[2], "wb") as file:
    file.write(out)
