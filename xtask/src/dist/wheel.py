#!/usr/bin/env python3
"""Makes a wheel that installs the two programs: wheel.py PROGRAMS OUT VERSION."""

import base64
import hashlib
import os
import sys
import time
import zipfile

TAG = "manylinux_2_17_x86_64.musllinux_1_1_x86_64"
PROGRAMS = ["levelhead", "levelhead-lab"]


def main():
    programs, out, version = sys.argv[1:4]
    stamp = max(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), 315532800)
    date = time.gmtime(stamp)[:6]
    info = f"levelhead-{version}.dist-info"
    files = []
    for name in PROGRAMS:
        with open(os.path.join(programs, name), "rb") as program:
            files.append((f"levelhead-{version}.data/scripts/{name}", program.read(), 0o755))
    metadata = f"""Metadata-Version: 2.1
Name: levelhead
Version: {version}
Summary: Software RAID for hard disks that stays fast with fail-slow drives, and its laboratory
License: MIT OR Apache-2.0
Requires-Python: >=3.8
"""
    wheel = "Wheel-Version: 1.0\nGenerator: levelhead\nRoot-Is-Purelib: false\n"
    wheel += "".join(f"Tag: py3-none-{platform}\n" for platform in TAG.split("."))
    files.append((f"{info}/METADATA", metadata.encode(), 0o644))
    files.append((f"{info}/WHEEL", wheel.encode(), 0o644))
    record = f"{info}/RECORD"
    lines = [f"{name},sha256={digest(data)},{len(data)}\n" for name, data, _ in files]
    files.append((record, ("".join(lines) + f"{record},,\n").encode(), 0o644))
    path = os.path.join(out, f"levelhead-{version}-py3-none-{TAG}.whl")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, data, mode in files:
            entry = zipfile.ZipInfo(name, date)
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)


def digest(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


if __name__ == "__main__":
    main()
