#!/usr/bin/env bash
# The extra `nvcc` of the wheel cuda-toolkit brings a compiler from CUDA 13 on. For CUDA 12 it installs without an
# error and holds ptxas and libdevice, but neither nvcc nor cicc: CUDA C++ cannot be compiled with it, PTX can. And
# ptxas 12.9.86 refuses PTX that nvcc 13.0 writes (version 9.0; it knows 8.8), so the older assembler cannot be tried
# behind the newer front end either.
#
# Seen on 28 November 2026, no GPU:
#   12.9.1: ptxas
#   13.0.3: cicc nvcc ptxas
#   ptxas 12.9 on PTX of 13.0: Unsupported .version 9.0; current version is '8.8'
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
for release in 12.9.1 13.0.3; do
  python3 -m pip -q --disable-pip-version-check install --target "$release" "cuda-toolkit[nvcc,cccl]==$release" \
    2> pip.log || { cat pip.log; exit 1; }
  echo "$release:" $(find "$release" \( -name nvcc -o -name cicc -o -name ptxas \) -type f -printf '%f\n' | sort)
done | tee seen.txt
echo '__global__ void scale(float *x, float a) { x[threadIdx.x] *= a; }' > scale.cu
13.0.3/nvidia/cu13/bin/nvcc -ptx -arch=sm_90a -o scale.ptx scale.cu
{ 12.9.1/nvidia/cuda_nvcc/bin/ptxas -arch=sm_90a -o scale.cubin scale.ptx 2>&1 || true; } | grep -o "Unsupported.*" |
  sed 's/^/ptxas 12.9 on PTX of 13.0: /' | tee -a seen.txt
cat > expected.txt <<'TEXT'
12.9.1: ptxas
13.0.3: cicc nvcc ptxas
ptxas 12.9 on PTX of 13.0: Unsupported .version 9.0; current version is '8.8'
TEXT
diff expected.txt seen.txt && echo "as it was"
