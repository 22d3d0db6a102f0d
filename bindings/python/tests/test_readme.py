"""The programs of the page run as they are printed."""

import pathlib
import re
import subprocess
import sys

import hikv

PAGE = pathlib.Path(__file__).parent.parent / "README.md"


def programs():
    return re.findall("```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


def run(program, place):
    command = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_first_program(tmp_path):
    program = programs()[0]
    assert program.count("\n") <= 10
    assert run(program, tmp_path) == "fruit:apple = red\nfruit:banana = yellow\n"
    with hikv.Store(tmp_path / "data") as store:
        assert len(store) == 2


def test_program_for_asyncio(tmp_path):
    [program] = [program for program in programs() if "hikv.aio" in program]
    assert run(program, tmp_path) == "job:1 = todo\njob:2 = todo\n"


def test_typed_program(tmp_path):
    (tmp_path / "program.py").write_text(
        "import hikv\n\n"
        "with hikv.Store('data') as store:\n"
        "    value: bytes | None = store.get(b'a')\n"
        "    number: int = store.get(b'a', 7)  # wrong: bytes or int\n"
        "    count: int = store.transact(lambda tx: len(tx.items()))\n"
        "    names: list[str] = store.trees()\n"
        "    store['text'] = b''  # wrong: text is no key\n"
    )
    command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "program.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    if "No module named mypy" in done.stderr:
        return
    wrong = sorted({int(line.split(":")[1]) for line in done.stdout.splitlines() if ": error:" in line})
    assert wrong == [5, 8], done.stdout
