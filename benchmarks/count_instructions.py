"""Instructions that a tile of 16 places costs, counted in the compiled kernels; `Machine` in bench/tissue.py has them.

    python benchmarks/count_instructions.py [--cuobjdump PATH] [--objdump PATH]

Compiles the native kernels of the lattice with the tools' part left out (few tiles are touched) and reads what came
out: for cuda with NVIDIA's `cuobjdump` (no GPU is needed; Triton's wheel carries one too), for cpu with `objdump`. What
is not found is left out. `ncu --metrics smsp__inst_executed.sum,smsp__inst_executed_pipe_lsu.sum` counts the same on a
GPU.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from types import ModuleType

import warp as wp

from viscera.tissue import native

LOOP, NO_LOOP = (
    "for (int t = 0; t < 2; ++t) {\n    const float* tool = tools.data + 16 * t;\n    if (!(tool[0] > 0.0f))",
    ("for (int t = 0; t < 0; ++t) {\n    const float* tool = tools.data + 16 * t;\n    if (!(tool[0] > 0.0f))"),
)
ARCH = 90
THREADS_PER_TILE = 8
"""On cuda: two masses each."""


def without_tools(folder: Path) -> ModuleType:
    """The module of the native kernels, its loop over tools empty."""
    text = Path(native.__file__).read_text()
    if LOOP not in text:
        raise SystemExit("native.py has another loop over tools than this script knows; correct LOOP.")
    path = folder / "native_without_tools.py"
    path.write_text(text.replace(LOOP, NO_LOOP))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def functions(listing: str, begins: str, line: str) -> dict[str, list[str]]:
    """Instructions of each function of a disassembly."""
    found: dict[str, list[str]] = {}
    name = ""
    for text in listing.splitlines():
        if head := re.search(begins, text):
            name = head.group(1)
            found[name] = []
        elif (code := re.match(line, text)) and name:
            found[name].append(code.group(1))
    return found


def cuda(module: ModuleType, folder: Path, tool: str) -> None:
    wp.compile_aot_module(module, arch=ARCH, module_dir=str(folder), use_ptx=False)
    (binary,) = folder.glob("*.cubin")
    listing = subprocess.run([tool, "--dump-sass", str(binary)], capture_output=True, text=True, check=True).stdout
    for name, code in functions(listing, r"Function : (\S+)", r"\s+/\*[0-9a-f]{4,5}\*/\s+(.*?);").items():
        if not name.startswith("lattice_pair_cuda"):
            continue
        operations = Counter(re.sub(r"^@!?U?P\d+\s+", "", one).split()[0] for one in code if "NOP" not in one)
        # A load of 8 bytes per thread goes through the unit in two halves.
        moves = sum(n * (2 if ".64" in op else 1) for op, n in operations.items() if op.startswith(("LDG", "STG")))
        warps = THREADS_PER_TILE / 32
        print(
            f"cuda, per tile: {warps * sum(operations.values()):.0f} instructions, {warps * moves:.0f} loads and stores"
        )
        print(f"  per thread of two masses: {operations.most_common(12)}")


def cpu(module: ModuleType, folder: Path, tool: str) -> None:
    wp.compile_aot_module(module, device="cpu", module_dir=str(folder))
    (binary,) = folder.glob("*.o")
    listing = subprocess.run(
        [tool, "-d", "--no-show-raw-insn", str(binary)], capture_output=True, text=True, check=True
    ).stdout
    for name, code in functions(listing, r"<(\S+)>:$", r"\s+[0-9a-f]+:\s+(.*)").items():
        roots = sum(one.startswith("vsqrtps") and "zmm" in one for one in code)
        if "lattice_step_cpu" not in name or not roots:
            continue
        copies = round(roots / 26)
        vector = [one for one in code if "zmm" in one]
        plain = [one for one in vector if not one.startswith(("vmov", "vbroadcast"))]
        moves = sum("(" in one for one in vector)
        print(f"cpu, per tile: {len(plain) / copies:.0f} vector instructions, {moves / copies:.0f} loads and stores")
        print(f"  {copies} copies of the loop: {Counter(one.split()[0] for one in plain).most_common(12)}")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cuobjdump", default=shutil.which("cuobjdump"))
    parser.add_argument("--objdump", default=shutil.which("objdump"))
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        module = without_tools(folder)
        for tool, count in ((chosen.objdump, cpu), (chosen.cuobjdump, cuda)):
            if tool:
                (folder / count.__name__).mkdir()
                count(module, folder / count.__name__, tool)
            else:
                print(f"{count.__name__}: no disassembler was found")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
