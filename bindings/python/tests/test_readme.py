"""The first program of the page runs as it is printed."""

import pathlib
import re
import subprocess
import sys

import hikv

PAGE = pathlib.Path(__file__).parent.parent / "README.md"


def test_first_program(tmp_path):
    program = re.search("```python\n(.*?)```", PAGE.read_text(), re.DOTALL).group(1)
    assert program.count("\n") <= 10
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "fruit:apple = red\nfruit:banana = yellow\n", "")
    with hikv.Store(tmp_path / "data") as store:
        assert len(store) == 2


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
