#!/usr/bin/env python3
"""Draws a terminal session as a picture: docs/terminal.py docs/terminal.txt >docs/terminal.svg

Lines that begin with "$ " are commands. A long command is wrapped as a shell would continue it.
"""
import sys
from html import escape

COLUMNS, LINE, CHAR = 118, 17, 7.25

lines = []
for text in open(sys.argv[1], encoding="utf-8").read().rstrip("\n").split("\n"):
    command = text.startswith("$ ")
    while command and len(text) > COLUMNS:
        cut = text.rfind(" ", 0, COLUMNS - 2)
        lines.append((True, text[:cut] + " \\"))
        text = "    " + text[cut + 1:]
    lines.append((command, text))

width = int(max(len(text) for _, text in lines) * CHAR) + 32
height = len(lines) * LINE + 32
print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
      f'role="img" aria-label="A terminal session">')
print(f'<rect width="{width}" height="{height}" rx="8" fill="#1d2026"/>')
print('<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, \'DejaVu Sans Mono\', monospace" font-size="12" '
      'xml:space="preserve">')
for n, (command, text) in enumerate(lines):
    if text:
        fill, weight = ("#e8c872", "bold") if command else ("#d5d8de", "normal")
        print(f'<text x="16" y="{28 + n * LINE}" fill="{fill}" font-weight="{weight}">{escape(text)}</text>')
print("</g></svg>")
