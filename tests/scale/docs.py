#!/usr/bin/env python3
"""Checks docs/planning-scale.md: a block that begins with "$ rlhf-host scale" shows the program's output.

    tests/scale/docs.py [--update] PROGRAM

--update writes the output into the page. The commands run in tests/scale, where their files are.
"""
import os
import re
import shlex
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = os.path.join(HERE, "..", "..", "docs", "planning-scale.md")
BLOCK = re.compile(r"^```\n(\$ (rlhf-host scale [^\n]*)\n)(.*?)^```$", re.M | re.S)


def main():
    update = sys.argv[1] == "--update"
    program = os.path.abspath(sys.argv[-1])
    wrong = []

    def again(block):
        args = shlex.split(block.group(2))[1:]
        done = subprocess.run([program, *args], cwd=HERE, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"docs/planning-scale.md: {block.group(2)}: {done.stderr}")
        if done.stdout != block.group(3):
            wrong.append(block.group(2))
        return f"```\n{block.group(1)}{done.stdout}```"

    with open(PAGE) as file:
        old = file.read()
    new, n = BLOCK.subn(again, old)
    if n == 0:
        sys.exit("docs/planning-scale.md: no command of rlhf-host scale is shown")
    if update:
        with open(PAGE, "w") as file:
            file.write(new)
    elif wrong:
        sys.exit("docs/planning-scale.md shows other output than the program, which "
                 f"tests/scale/docs.py --update PROGRAM corrects: {'; '.join(wrong)}")


if __name__ == "__main__":
    main()
