# SPDX-License-Identifier: Apache-2.0
"""Runs a command to which the kernel refuses system calls, as a sandbox does: refuse.py NUMBER,... COMMAND..."""

import os
import struct
import sys
from ctypes import CDLL, addressof, c_char_p, c_ulong, create_string_buffer

EPERM, ALLOW, REFUSE = 1, 0x7FFF0000, 0x00050000
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
SET_NO_NEW_PRIVS, SET_SECCOMP, FILTER = 38, 22, 2


def main():
    numbers = [int(number) for number in sys.argv[1].split(",")]
    rules = [(LOAD, 0, 0, 0)]
    for number in numbers:
        rules += [(EQUAL, 0, 1, number), (RETURN, 0, 0, REFUSE | EPERM)]
    rules.append((RETURN, 0, 0, ALLOW))
    program = create_string_buffer(b"".join(struct.pack("HBBI", *rule) for rule in rules))
    holder = struct.pack("HxxxxxxP", len(rules), addressof(program))
    libc = CDLL(None, use_errno=True)
    assert libc.prctl(SET_NO_NEW_PRIVS, c_ulong(1), c_ulong(0), c_ulong(0), c_ulong(0)) == 0
    assert libc.prctl(SET_SECCOMP, c_ulong(FILTER), c_char_p(holder), c_ulong(0), c_ulong(0)) == 0
    os.execvp(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
