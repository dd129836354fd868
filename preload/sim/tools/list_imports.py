# SPDX-License-Identifier: Apache-2.0
"""List what an installed torch imports from the CUDA libraries, one file a library, for the simulator's stubs.

usage: list_imports.py SITE_PACKAGES OUT_FOLDER

Reads the undefined dynamic symbols of torch's libraries with `nm -D`, the names that they look up at run
time (the driver's and NVML's, which stand in them as strings), and what the CUDA runtime beside it exports:
other programs call more of it than torch. Existing lists are merged, so that the result covers every torch
it was run on. Needs binutils; the build does not run it.
"""

import re
import subprocess
import sys
from pathlib import Path

# Library -> what its symbols look like. The first match wins.
LIBRARIES = {
    "cudart": r"(__)?cuda[A-Z]\w+",
    "cublasLt": r"cublasLt\w+",
    "cublas": r"cublas\w+",
    "cudnn": r"cudnn\w+",
    "cusolver": r"cusolver\w+",
    "cusparseLt": r"cusparseLt\w+",
    "cusparse": r"cusparse\w+",
    "cufft": r"cufft\w+",
    "curand": r"curand\w+",
    "nccl": r"(p?nccl)[A-Z]\w+",
    "nvml": r"nvml\w+",
    "driver": r"cu[A-Z]\w+",
}
# Not simulated: the real library works without a device, or has one of its own kind.
LEFT_OUT = re.compile(r"cuFile\w+|nvrtc\w+|cupti\w+|nvshmem\w+|cuda(Graphics|EGL|VDPAU|GL)\w+|cudaCreateChannelDesc")


def symbols(library: Path, which: str) -> set[str]:
    """The dynamic symbols of `library` that `nm --which-only` lists, without their versions."""
    out = subprocess.run(["nm", "-D", f"--{which}-only", str(library)], capture_output=True, text=True, check=True)
    return {line.split()[-1].split("@")[0] for line in out.stdout.splitlines() if line.strip()}


def looked_up(library: Path) -> set[str]:
    """Driver and NVML names that stand in `library` as whole strings: it resolves them at run time."""
    found = re.findall(rb"\0((?:cu[A-Z]|nvml[A-Z])[A-Za-z0-9_]{3,60})(?=\0)", library.read_bytes())
    return {name.decode() for name in found}


def main(site: Path, out: Path) -> None:
    names: set[str] = set()
    for library in sorted((site / "torch" / "lib").glob("*.so")):
        names |= symbols(library, "undefined")
        if library.name in ("libc10_cuda.so", "libtorch_cuda.so"):
            names |= looked_up(library)
    for runtime in site.glob("nvidia/*/lib/libcudart.so.*"):
        names |= {name for name in symbols(runtime, "defined") if name.startswith("cuda")}
    for library, pattern in LIBRARIES.items():
        mine = {n for n in names if re.fullmatch(pattern, n) and not LEFT_OUT.fullmatch(n)}
        names -= mine
        target = out / f"{library}.txt"
        if target.exists():
            mine |= {n for n in target.read_text().split("\n") if n and not n.startswith("#")}
        if mine:
            head = f"# What torch imports from {library}. Written by tools/list_imports.py."
            target.write_text("\n".join([head, *sorted(mine)]) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]))
