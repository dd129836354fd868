#!/usr/bin/env bash
# The demo: a real training script under gml-run, on the GPU of this machine or else on the simulated
# one, with PyTorch's own allocator first, so that the difference is measured and not claimed.
set -euo pipefail
cd "$(dirname "$0")/../.."
script=docs/examples/train_gpt2.py
device=()
if python -c 'import ctypes; raise SystemExit(ctypes.CDLL("libcuda.so.1").cuInit(0))' 2>/dev/null; then
  echo "demo: on the GPU of this machine"
else
  echo "demo: no GPU here: on a simulated H100 (memory figures are real, values and times are not)"
  device=(--simulate h100)
fi
echo
echo "demo: 1 of 2, PyTorch's own allocator:  gml-run ${device[*]} --allocator native python $script"
gml-run "${device[@]}" --allocator native python "$script"
echo
echo "demo: 2 of 2, the stitching allocator:  gml-run ${device[*]} --goal memory python $script"
gml-run "${device[@]}" --goal memory python "$script"
