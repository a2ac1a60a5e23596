#!/usr/bin/env bash
# Of a cubin that nvcc 13.0.88 compiles with -lineinfo for Blackwell, two sections name the same bytes:
# .nv.merc.nv_debug_ptx_txt those of .nv_debug_ptx_txt (and where functions are inlined .nv.merc.debug_str those
# of .debug_str). The sizes of all sections then add up to more than the file: a reader that takes overlapping
# sections for damage refuses every such cubin. For Hopper no two sections share a byte.
#
# Seen on 28 November 2026 with the wheels of cuda-toolkit 13.0.3 and pyelftools 0.32, no GPU:
#   sm_90a: 0 shared
#   sm_100a: .nv.merc.nv_debug_ptx_txt = .nv_debug_ptx_txt
#   sm_120: .nv.merc.nv_debug_ptx_txt = .nv_debug_ptx_txt
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip -q --disable-pip-version-check install "cuda-toolkit[nvcc,cccl]==13.0.3" pyelftools==0.32
nvcc=$(echo "$folder"/env/lib/python3*/site-packages/nvidia/cu13/bin/nvcc)
echo '__global__ void scale(float *x, float a) { x[threadIdx.x] *= a; }' > scale.cu
for arch in sm_90a sm_100a sm_120; do "$nvcc" -cubin -lineinfo -arch=$arch -o $arch.cubin scale.cu; done
cat > shared.py <<'PYTHON'
import sys
from elftools.elf.elffile import ELFFile

for arch in sys.argv[1:]:
    with open(f"{arch}.cubin", "rb") as file:
        first, shared = {}, []
        for section in ELFFile(file).iter_sections():
            span = section["sh_offset"], section["sh_size"]
            if section["sh_type"] == "SHT_NOBITS" or not span[1]:
                continue
            if span in first:
                shared.append(f"{section.name} = {first[span]}")
            first.setdefault(span, section.name)
    print(f"{arch}: {', '.join(shared) or '0 shared'}")
PYTHON
env/bin/python shared.py sm_90a sm_100a sm_120 | tee seen.txt
cat > expected.txt <<'TEXT'
sm_90a: 0 shared
sm_100a: .nv.merc.nv_debug_ptx_txt = .nv_debug_ptx_txt
sm_120: .nv.merc.nv_debug_ptx_txt = .nv_debug_ptx_txt
TEXT
diff expected.txt seen.txt && echo "as it was"
