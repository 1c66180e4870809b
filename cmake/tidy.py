"""Runs clang-tidy on all sources: cmake/tidy.py BUILD_DIR [SOURCE…]

Most of clang-tidy's time goes into the headers of Boost and the standard library, which it walks again for each source.
So up to ten sources of a folder are checked as one unit. A unit that does not compile as a whole, because two of its
sources use the same name, is split. With names of sources as further arguments it checks only those.
"""
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

UNIT_SIZE = 10
OURS = r"--header-filter=/(src|tests|bench)/.*\.[ch]pp$"  # the sources of a unit count as headers


def flags_of(entry):
    """The flags of a compile command, without the source and the output."""
    words = iter(shlex.split(entry["command"])[1:])
    flags = []
    for word in words:
        if word in ("-o", "-c"):
            next(words)
        else:
            flags.append(word)
    return tuple(flags)


def units_of(database, root, only):
    groups = collections.defaultdict(list)
    for entry in database:
        source = pathlib.Path(entry["file"]).relative_to(root)
        if source.parts[0] in ("src", "tests", "bench") and (not only or str(source) in only):
            groups[(source.parent, source.stem.endswith("test"), flags_of(entry))].append(source)
    for (_, _, flags), sources in groups.items():
        sources = sorted(set(sources))
        for begin in range(0, len(sources), UNIT_SIZE):
            yield sources[begin : begin + UNIT_SIZE], flags


def split(sources, command):
    """Splits sources into those that compile as one unit, and those that redefine a name of an earlier one."""
    done = subprocess.run(command, capture_output=True, text=True)
    guilty = set(re.findall(r"^(\S+?):\d+:\d+: error:", done.stderr, re.MULTILINE))
    later = [source for source in sources[1:] if any(path.endswith(str(source)) for path in guilty)]
    if done.returncode and not later:
        later = sources[1:]
    return [source for source in sources if source not in later], later


def check(sources, flags, root, folder):
    """Prints the findings; returns whether there are none."""
    path = sources[0]
    if len(sources) > 1:
        path = folder / str(path).replace("/", "_")
        lines = [f'#include "{root / source}"  // NOLINT(bugprone-suspicious-include)\n' for source in sources]
        path.write_text("".join(lines))
        together, later = split(sources, ["clang++-19", "-fsyntax-only", "-ferror-limit=0", *flags, str(path)])
        if later:
            return all([check(part, flags, root, folder) for part in (together, later)])
    command = ["clang-tidy-19", "--quiet", "--warnings-as-errors=*", OURS, str(path), "--", *flags]
    done = subprocess.run(command, capture_output=True, text=True)
    print(done.stdout or (done.stderr if done.returncode else ""), end="", flush=True)
    return done.returncode == 0


def main():
    root, build = pathlib.Path.cwd(), pathlib.Path(sys.argv[1])
    folder = build / "tidy"
    folder.mkdir(parents=True, exist_ok=True)
    units = list(units_of(json.loads((build / "compile_commands.json").read_text()), root, sys.argv[2:]))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        clean = list(pool.map(lambda unit: check(*unit, root, folder), units))
    sys.exit(0 if all(clean) else 1)


main()
