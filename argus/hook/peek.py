"""Read the beginning of a small file that anybody may have laid there.

A pipe, a device or a huge file with the right name must not hold up a hook. On the fast path.
Knows nothing about what is in the file.
"""

from __future__ import annotations

import os

_TYPE, _REGULAR = 0o170000, 0o100000


def peek(path: str, most: int) -> tuple[str, int] | None:
    """The first `most` bytes as text, and the owner's number; None when there is no such file.

    Raises OSError when the file is there and cannot be read, or is no plain file.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError as error:
        raise OSError(str(error)) from None
    try:
        status = os.fstat(descriptor)
        if status.st_mode & _TYPE != _REGULAR:
            raise OSError(f"{path} is no plain file")
        data = b""
        while len(data) < most:
            piece = os.read(descriptor, most - len(data))
            if not piece:
                break
            data += piece
    finally:
        os.close(descriptor)
    return data.decode("utf-8", "replace"), status.st_uid
