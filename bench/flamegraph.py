"""Draws a flame graph from stacks: perf script --no-inline | bench/flamegraph.py [COMMAND…] > graph.svg

Width is the share of samples, the callers are below. With commands, only samples of those programs count. Frames of less
than four thousandths are left out. Hover over a frame to see its name and share.
"""
import collections
import html
import re
import sys

WIDTH, ROW, LEAST = 1200, 16, 0.004


class Frame:
    def __init__(self):
        self.samples = 0
        self.callees = collections.defaultdict(Frame)


def stacks(lines, commands):
    """Yields the frames of each sample, the outermost first."""
    command, frames = None, []
    for line in lines:
        if not line.strip():
            if command and frames and (not commands or command in commands):
                yield [command, *reversed(frames)]
            command, frames = None, []
        elif not line[0].isspace():
            command = re.sub(r"\s+\d+.*", "", line.strip())
        else:
            symbol = re.sub(r"^\s*[0-9a-f]+ ", "", line.rstrip())
            frames.append(re.sub(r"\+0x[0-9a-f]+|\s+\([^()]*\)$", "", symbol).strip() or "?")


def boxes(frame, name, x, depth, total):
    if frame.samples < LEAST * total:
        return
    yield name, x, depth, frame.samples
    for callee, inner in sorted(frame.callees.items()):
        yield from boxes(inner, callee, x, depth + 1, total)
        x += inner.samples


def main():
    root = Frame()
    for stack in stacks(sys.stdin, sys.argv[1:]):
        frame = root
        frame.samples += 1
        for name in stack:
            frame = frame.callees[name]
            frame.samples += 1
    if root.samples == 0:
        sys.exit("flamegraph.py: no samples")
    drawn = list(boxes(root, "all", 0, 0, root.samples))
    height = (max(depth for _, _, depth, _ in drawn) + 1) * ROW
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="monospace" font-size="11">')
    for name, x, depth, samples in drawn:
        left, width = x / root.samples * WIDTH, samples / root.samples * WIDTH
        top = height - (depth + 1) * ROW
        color = f"hsl({20 + hash(name) % 35}, 80%, {60 + hash(name) % 20}%)"
        label = html.escape(name if len(name) * 7 < width else name[: max(int(width / 7) - 1, 0)])
        print(
            f'<g><title>{html.escape(name)}: {100 * samples / root.samples:.1f} %</title>'
            f'<rect x="{left:.1f}" y="{top}" width="{width:.1f}" height="{ROW - 1}" fill="{color}"/>'
            f'<text x="{left + 2:.1f}" y="{top + 12}">{label}</text></g>'
        )
    print("</svg>")


main()
