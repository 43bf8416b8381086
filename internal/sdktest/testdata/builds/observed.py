"""Notes which of the SDK's public calls run, by watching: nothing of the SDK is changed.

The file that OBSERVED names gets a line for each call that has run, whichever of the app's processes it ran in.
"""

import inspect
import os
import sys

import wakeshift


def functions_of(name: str, member: object):
    """A public function by its name, or those of a class."""
    if inspect.isclass(member):
        for part, of_class in vars(member).items():
            if not part.startswith("_"):
                yield from functions_of(f"{name}.{part}", of_class)
    elif isinstance(member, property):
        yield name, member.fget
    elif isinstance(member, classmethod):
        yield name, member.__func__
    elif inspect.isfunction(member):
        yield name, member


PUBLIC = {
    function.__code__: name
    for exported in wakeshift.__all__
    for name, function in functions_of(exported, getattr(wakeshift, exported))
}

seen: set[str] = set()


def note(frame, _event, _argument) -> None:
    """What Python calls when a function begins."""
    name = PUBLIC.get(frame.f_code)
    if name is None or name in seen:
        return
    seen.add(name)
    file = os.open(os.environ["OBSERVED"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(file, f"{name}\n".encode())
    os.close(file)


def begin() -> None:
    """Watches this thread, which is the one the app runs in, from now on."""
    sys.settrace(note)


def not_run() -> list[str]:
    """The public calls that have run in none of the app's processes."""
    with open(os.environ["OBSERVED"]) as file:
        return sorted(set(PUBLIC.values()) - set(file.read().split()))
