"""Which frames of a Python stack are the user's."""

import functools
import os
import sys

import torch

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Folders, not names: a user may well keep a model in a folder called torch.
_FOLDERS = tuple(os.path.join(folder, "") for folder in (
    os.path.dirname(os.path.abspath(torch.__file__)), os.path.dirname(os.path.realpath(torch.__file__)),
    _PACKAGE, os.path.realpath(_PACKAGE), os.path.dirname(os.path.dirname(os.path.realpath(__file__)))))


@functools.cache
def is_library_file(name: str) -> bool:
    """Whether a code's file is torch's or ours, by its co_filename."""
    return name.startswith(_FOLDERS) or name.startswith("<fxjit")


def user_frame(frame=None):
    """The innermost frame that is neither torch's nor ours."""
    frame = frame or sys._getframe(1)
    while frame is not None and is_library_file(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def recorded_frames(summary, forward_only):
    """The frames of a StackSummary that a node records: from the first forward on (`forward_only`: those of functions of
    that name), without torch's and our own files."""
    from torch.fx.experimental.symbolic_shapes import uninteresting_files

    frames = list(summary)
    if forward_only:
        frames = [f for f in frames if f.name == "forward" or f.filename.endswith("torch/__init__.py")]
    else:
        first = next((i for i, f in enumerate(frames) if f.name == "forward"), len(frames))
        frames = frames[first:]
    hidden = uninteresting_files()
    frames = [f for f in frames if f.filename not in hidden and not is_library_file(f.filename)]
    return type(summary).from_list(frames)
