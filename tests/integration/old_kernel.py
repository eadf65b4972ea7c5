"""Runs a command as if on a kernel of JetPack 4 (4.9): python3 old_kernel.py COMMAND...

A seccomp filter (seccomp(2)) answers as that kernel does: pidfd_open is ENOSYS (Linux 5.3 brought it), the socket
options SO_PEERPIDFD (6.5) and SO_PEERGROUPS (4.13) are ENOPROTOOPT. The command and all its children get these answers.
"""

import ctypes
import errno
import os
import platform
import struct
import sys

_PIDFD_OPEN, _SO_PEERPIDFD, _SO_PEERGROUPS = 434, 77, 59
_GETSOCKOPT = {"x86_64": 55, "aarch64": 209}
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06  # BPF_LD|W|ABS, BPF_JMP|JEQ|K, BPF_RET|K
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_NUMBER, _OPTION = 0, 32  # offsets in struct seccomp_data: the call's number, the low half of its third argument
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _MODE_FILTER = 38, 22, 2


def main() -> None:
    program = (
        (_LOAD, 0, 0, _NUMBER),
        (_EQUAL, 0, 1, _PIDFD_OPEN),
        (_RETURN, 0, 0, _ERRNO | errno.ENOSYS),
        (_EQUAL, 0, 4, _GETSOCKOPT[platform.machine()]),
        (_LOAD, 0, 0, _OPTION),
        (_EQUAL, 1, 0, _SO_PEERPIDFD),
        (_EQUAL, 0, 1, _SO_PEERGROUPS),
        (_RETURN, 0, 0, _ERRNO | errno.ENOPROTOOPT),
        (_RETURN, 0, 0, _ALLOW),
    )
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in program))
    head = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(program), ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    for arguments in ((_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), (_PR_SET_SECCOMP, _MODE_FILTER, head, 0, 0)):
        if libc.prctl(*arguments) != 0:
            raise OSError(ctypes.get_errno(), "prctl")
    os.execvp(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
