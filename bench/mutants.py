"""How many wrong kernels the check on the CPU catches: mutants of the good versions, and harmless rewrites.

Usage: python bench/mutants.py [--most N] [--versions v2b,v2d_b] [--category masks] [--harmless] [--survey]
                               [--jobs N] [--out FILE.json]
       python bench/mutants.py --versions v2d_d,v2e,v2f,v2g --seed 20      the rules for asynchronous code

A mutant is a version with one place of its source changed by a rule: a barrier left out, `<` for
`<=`, len_q for len_kv, a sum rounded to fp16. It runs on the workloads and schedules of `profiler
check`, and is caught by the first run that does not pass. What survives is compared with the version
that it was made of, bit by bit, over other shapes and inputs: a mutant that differs nowhere changed
nothing that anybody can see, and does not count. Harmless rewrites compute the same in other words,
and must pass. --survey goes on after the first catch, with one schedule, and prints what each workload
catches alone.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import sys
import tempfile
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from profiler.catalog.attention import ATTENTION
from profiler.catalog.cases import version_workloads
from profiler.catalog.catalog import PROJECT_KERNELS, load_catalog
from profiler.catalog.version import Version
from profiler.emulator.contract_check import check_contract
from profiler.emulator.cpu_check import SEEDS_GOOD
from profiler.emulator.cpu_library import build_cpu_library
from profiler.emulator.emulator import SHARED_BUDGET_BYTES, Emulator, Schedule
from profiler.errors import BuildFailed

TIME_LIMIT_S = 30.0  # of a run; the slowest right one takes about 5 s, and a busy machine stops none of these
MOST_A_VERSION = 45
SURVEY_SEEDS = (1,)  # what a workload catches it mostly catches in any random order
TARGET = 98.0  # % of the mutants that change anything
# What no check runs on: shapes in which every size differs, one row, one key, lengths about a tile's end.
WIDE = (
    (2, 3, 37, 91, False, "normal"),
    (3, 2, 91, 37, True, "offsets"),
    (1, 3, 65, 129, True, "offsets"),
    (2, 2, 1, 70, False, "sharp"),
    (1, 2, 70, 1, True, "normal"),
    (1, 5, 191, 191, True, "sharp"),
    (2, 1, 17, 700, True, "flat"),
)

# Lines that only the ONLY builds have, and those that no rule should touch.
_LEFT_ALONE = re.compile(
    r"^\s*(#|using|template|static_assert|struct|namespace|\}|return CUDA_INVALID|extern|int batch|int heads)"
    r"|stage_store|stage_rescale|stage_row|STAGE_BUILD|int launch_|\[\[|alignas|memcpy\((?!pairs|code)"
)
# A line that plants a bug, or is marked for one: rules for asynchronous code alone change it, beside the bug.
_PLANTED = re.compile(r"BUG_|caught here")
# What calls a kernel is changed by the rules of these categories alone.
_CALLERS = re.compile(
    r"__launch_bounds__|LAUNCH\(|dim3\(THREADS\)|SMEM, stream|if \(head_dim|_are_valid|aligned"
)
_OF_CALLERS = ("launch", "contract")
# What v2e and its successors have: mbarriers, TMA, two proxies, wgmma, pools of registers, clusters.
_ASYNCHRONOUS = (
    *("arrivals", "phases", "bytes", "boxes", "proxies", "wgmma", "descriptors", "pipeline"),
    *("register pool", "named barriers", "clusters", "merge"),
)
Rule = tuple[str, str, str]  # category, pattern, replacement

RULES: tuple[Rule, ...] = (
    # --- what must wait for what
    ("barriers", r"__syncthreads\(\);", ";"),
    ("barriers", r"__syncthreads\(\);", "__syncwarp();"),
    ("barriers", r"__syncthreads\(\);", "if (threadIdx.x < 32) __syncthreads();"),
    ("barriers", r"__syncwarp\(\);", ";"),
    ("waits", r"__pipeline_wait_prior\(([^;]+)\);", ";"),
    ("waits", r"__pipeline_wait_prior\(([^;]+)\);", r"__pipeline_wait_prior(\1 + 1);"),
    ("waits", r"__pipeline_commit\(\);", ";"),
    ("stages", r"\bt % 2\b", "0"),
    ("stages", r"\bt % 2\b", "(t + 1) % 2"),
    ("stages", r"\bt \+ 1 < tiles\b", "t + 2 < tiles"),
    ("stages", r"\bt \+ 1 < tiles\b", "t + 1 <= tiles"),
    ("stages", r"\bstage \+ 1 < STAGES\b", "stage + 2 < STAGES"),
    ("stages", r"\bstage \+ 1 < STAGES\b", "stage + 1 <= STAGES"),
    ("stages", r"\bspare = stage;", ";"),
    ("stages", r"\bt \+ STAGES - 1\b", "t + STAGES"),
    ("stages", r"\bt \+ STAGES - 1\b", "t + STAGES - 2"),
    ("stages", r"\bt < STAGES - 1\b", "t < STAGES"),
    ("stages", r"\bload_tile\(0\);", ";"),
    ("stages", r"\bstage \* BN\b", "0 * BN"),
    # --- who does what
    ("lanes", r"\blane_id\b", "(lane_id ^ 1)"),
    ("lanes", r"\blane_id % (\d+)", r"lane_id % (\1 / 2)"),
    ("lanes", r"\blane_id / (\d+)", r"lane_id / (\1 * 2)"),
    ("lanes", r"\blane_id == 0\b", "lane_id == 1"),
    ("lanes", r"\blane_id == 0\b", "true"),
    ("lanes", r"\blane_id == i\b", "lane_id <= i"),
    ("lanes", r"\bwarp_id\b", "(warp_id ^ 1)"),
    ("lanes", r"\bwarp_id\b(?! =)", "0"),
    ("lanes", r"\bwarp_sum\(", "("),
    ("lanes", r"\bwarp_max\(", "("),
    ("lanes", r"(__shfl_xor_sync\(FULL_WARP, \w+), 1\)", r"\1, 2)"),
    ("lanes", r"(__shfl_xor_sync\(FULL_WARP, \w+), 2\)", r"\1, 4)"),
    ("lanes", r"__shfl_xor_sync\(FULL_WARP, (\w+), \w+\)", r"\1"),
    ("lanes", r"\bint o = 16\b", "int o = 8"),
    ("lanes", r"\bo > 0\b", "o > 1"),
    ("lanes", r"__shfl_sync\(FULL_WARP, ([^,]+), i\)", r"\1"),
    ("lanes", r"\bthread\b(?! =)", "(thread ^ 1)"),
    ("lanes", r"\+= THREADS\b", "+= 2 * THREADS"),
    ("lanes", r"\+= WARPS\b", "+= 2 * WARPS"),
    ("lanes", r"\+= 32\b", "+= 64"),
    # --- tensor-core fragments
    ("fragments", r"ldmatrix_x4_trans\(", "ldmatrix_x4("),
    ("fragments", r"ldmatrix_x4\(K_rmem", "ldmatrix_x4_trans(K_rmem"),
    ("fragments", r"\[0\], (\w+)\[1\]\)", r"[1], \1[0])"),
    ("fragments", r"\[2\], (\w+)\[3\]\)", r"[3], \1[2])"),
    ("fragments", r"\[2\], (\w+)\[3\]\)", r"[0], \1[1])"),
    ("fragments", r"\bmma_m16n8k16\(\w+\[(\w) \+ 1\].*?;", ";"),
    ("fragments", r"wmma::row_major", "wmma::col_major"),
    ("fragments", r"wmma::mem_row_major", "wmma::mem_col_major"),
    ("fragments", r"wmma::fill_fragment\(.*?\);", ";"),
    ("fragments", r"wmma::mma_sync\(.*?\);", ";"),
    ("fragments", r"wmma::store_matrix_sync\(.*?\);", ";"),
    ("fragments", r"S_rmem\[2 \* k\]", "S_rmem[2 * k + 1]"),
    ("fragments", r"\bi % 2\b", "0"),
    ("fragments", r"\bi / 2\b", "0"),
    ("fragments", r"\bh \* 2 \+ 1\b", "h * 2"),
    ("fragments", r"P0\[2\], P0\[3\]", "P0[0], P0[1]"),
    ("fragments", r"chunk \^ \(row & 7\)", "chunk ^ (row & 3) "),
    ("fragments", r"\^ \(row & 7\)", "^ (row & 7) ^ (ROWS_ODD & 1)"),
    # --- how far
    ("bounds", r"(?<=[\w\)\]]) < (?=[\w\(])", " <= "),
    ("bounds", r"(?<=[\w\)\]]) < (?=[\w\(])(\w+)(?=[;\)])", r" < \1 - 1"),
    ("bounds", r"(?<=\w) >= (?=\w)", " > "),
    ("bounds", r"(?<=\w) > (?=\w)", " >= "),
    ("bounds", r"\bint (\w+) = 0(?=;)", r"int \1 = 1"),
    ("bounds", r"\bint k0 = 0\b", "int k0 = BN"),
    ("tails", r"\(len_q \+ \S+ - 1\) / ", "len_q / "),
    ("tails", r"\(kv_end \+ BN - 1\) / BN", "kv_end / BN"),
    ("tails", r"\bmin\((.+?), len_q\) - 1", r"(\1)"),
    ("tails", r"\bmin\((.+?), len_(kv|q) - 1\)", r"(\1)"),
    ("tails", r"\bmin\((.+?), len_(kv|q) - 1\)", r"min(\1, len_\2)"),
    ("tails", r"\bmin\((.+?), len - 1\)", r"(\1)"),
    ("tails", r"\bmin\((.+?), len - 1\)", r"min(\1, len)"),
    ("tails", r"\bmin\(THREADS, kv_end - k0\)", "THREADS"),
    ("tails", r"\bmax\(1, (.+?)\);", r"(\1);"),
    ("tails", r"\brow < rows\b", "true"),
    ("tails", r"\brow < rows\b", "row <= rows"),
    ("tails", r"\blen_(q|kv) - (\w+)(?= ?\*|\))", r"len_\1"),
    ("tails", r" && q0 \+ (\w+)( \+ r)? < len_q", ""),
    ("tails", r"inv_l = (visible|l) > 0(\.f)? \? (.+?) : 0\.f", r"inv_l = \3"),
    # --- which keys a query sees
    ("masks", r"\bi \+ 1 \+ len_kv - len_q\b", "i + 1"),
    ("masks", r"\bi \+ 1 \+ len_kv - len_q\b", "i + len_kv - len_q"),
    ("masks", r"\bi \+ 1 \+ len_kv - len_q\b", "i + 2 + len_kv - len_q"),
    ("masks", r"\bi \+ 1 \+ len_kv - len_q\b", "(i / 2 * 2) + 1 + len_kv - len_q"),
    ("masks", r"\bi \+ 1 \+ len_kv - len_q\b", "i + 1 + (len_kv - len_q) / 16 * 16"),
    ("masks", r"max\(0, min\(len_kv, (.+?)\)\)", r"min(len_kv, \1)"),
    ("masks", r"max\(0, min\(len_kv, (.+?)\)\)", r"max(0, \1)"),
    ("masks", r"return causal \?", "return true ?"),
    ("masks", r"return causal \?", "return false ?"),
    ("masks", r"\bkey >= visible\b", "key > visible"),
    ("masks", r"\bmask_score\((.+?), (k0|t \* BN|h|k|key)", r"(\1); (void)((float)\2"),
    ("masks", r"= mask_score\((.+), (\w[^,]*), visible(\[\w / 2\])?\);", r"= \1;"),
    ("masks", r"= mask_score\((.+), (\w[^,]*), (visible(\[\w / 2\])?)\);", r"= mask_score(\1, \2 + 1, \3);"),
    ("masks", r"= mask_score\((.+), (\w[^,]*), (visible(\[\w / 2\])?)\);", r"= mask_score(\1, \2 - 1, \3);"),
    ("masks", r"\(t \+ 1\) \* BN > seen_by_all", "t * BN > seen_by_all"),
    ("masks", r"\(t \+ 1\) \* BN > seen_by_all", "(t + 1) * BN > seen_by_all + 8"),
    ("masks", r"visible_keys\(q0 \+ (\w+)", r"visible_keys(q0 + 8 + \1"),
    ("masks", r"visible_keys\(q0 \+ (\w+)", r"visible_keys(\1"),
    ("masks", r"- t \* BN;", "- (t + 1) * BN;"),
    ("masks", r"keys_to_visit\((.+?), len_q", r"keys_to_visit(\1 - 16, len_q"),
    ("masks", r"\bvisible_keys\(([^()]+(?:\([^()]*\))?[^()]*)\)", "len_kv"),
    # --- the softmax
    ("scale", r" \* scale\b(?!s|_)", ""),
    ("scale", r" \* scale\b(?!s|_)", " * scale * scale"),
    ("scale", r" \* scale_log2\b", " * scale_log2 * 1.0625f"),
    ("scale", r"scale \* LOG2E\b", "0.125f * LOG2E"),
    ("scale", r"dot \* scale\b", "dot * rsqrtf((float)D)"),
    ("scale", r"\*= scale;", "*= rsqrtf((float)D);"),
    ("scale", r"\*= scale;", "*= 1.f;"),
    ("scale", r"S_scale = scale \*", "S_scale ="),
    ("scale", r" \* scales\[\w+ \+ head_of_block\(\)\]", ""),
    ("scale", r"scales\[head_of_block\(\)\]", "scales[0]"),
    ("scale", r" \* V_scale\b", ""),
    ("scale", r" \* inv_l\b", ""),
    ("rescale", r"\*= correction;", "*= 1.f;"),
    ("rescale", r" \* correction\b", ""),
    ("rescale", r"\bcorrection = (.+?);", "correction = 1.f;"),
    ("rescale", r"__expf\(m_(old|rmem\[r\]) - m_new\)", "__expf(m_new)"),
    ("rescale", r"\bm_(\w+)(\[\w+\])? = m_new;", ";"),
    ("rescale", r"\bM_START\b", "0.f"),
    ("rescale", r"\bM_START\b", "-4.f"),
    ("rescale", r"UNSCALED_M_START, UNSCALED_M_START", "0.f, 0.f"),
    ("rescale", r"UNSCALED_M_START, UNSCALED_M_START", "-30.f, -30.f"),
    ("rescale", r"fmaxf\((m_new|m), (.+)\);", r"\1;"),
    ("rescale", r"m_new = fmaxf\(m_old, warp_max\(m_new\)\)", "m_new = warp_max(m_new)"),
    ("rescale", r"m_new = fmaxf\(m_rmem\[r\], (.+)\);", r"m_new = \1;"),
    ("rescale", r"m_new = fmaxf\((\w+)(\[\w\])?, (.+)\);", r"m_new = 0.f;"),
    ("rescale", r"\bm = warp_max\(m\);", "m = 0.f;"),
    ("rescale", r"float m_new = (\S+);", r"float m_new = 0.f;"),
    ("rescale", r"(exp\w+)\((\S+) - (m|m_new)\)", r"\1(\2)"),
    ("rescale", r"scale_log2 - base\)", "scale_log2)"),
    ("rescale", r"\bl_old\b(?! =)", "0.f"),
    ("rescale", r"\bl \+= p;", "l = p;"),
    ("rescale", r"\bsum \+= (\S+);", r"sum = \1;"),
    ("rescale", r"l_rmem\[h\] \+= p;", ";"),
    # --- which part of memory
    ("strides", r"head_of_block\(\)", "(size_t)blockIdx.y"),
    ("strides", r"head_of_block\(\)", "(size_t)blockIdx.z"),
    ("strides", r"blockIdx\.z \* gridDim\.y", "blockIdx.z * gridDim.z"),
    ("strides", r"\* len_kv \* D", "* len_q * D"),
    ("strides", r"\* len_q \* D", "* len_kv * D"),
    ("strides", r"\* len_q \+ row\b", "* len_kv + row"),
    ("strides", r" \* D\b(?! /)", " * 64"),
    ("strides", r" \* (LD|S_LD|P_LD|U_LD|O_LD|KT_LD)\b", r" * (\1 - 8)"),
    ("strides", r"\* BM\b", "* (BM - 1)"),
    ("strides", r"\bdim3\((.+?), heads, batch\)", r"dim3(\1, batch, heads)"),
    ("strides", r"\bgrid\((.+?), heads, batch\)", r"grid(\1, batch, heads)"),
    ("strides", r"\bgrid\((.+?), heads, batch\)", r"grid(\1, heads, 1)"),
    ("strides", r"\bmatrices \+", "1 +"),
    ("strides", r"gridDim\.y \* gridDim\.z", "gridDim.y"),
    ("strides", r"(?<=[\w\)]) \+ (?=[\w\(][^;]*\])", " - "),
    ("strides", r"(?<=\w) \* (\d+)(?=[ ,\]\)])", r" * (\1 + 1)"),
    ("strides", r"(?<=\w) / 8\b", " / 4"),
    # --- what is rounded
    ("precision", r"\b(dot|sum|l|u) \+= ([^;]+);", r"\1 = __half2float(__float2half(\1 + \2));"),
    ("precision", r"(O_rmem\[\w+\](?:\.\w)?) \+= ([^;]+);", r"\1 = __half2float(__float2half(\1 + \2));"),
    ("precision", r"(l_rmem\[\w\]) \+= p;", r"\1 = __half2float(__float2half(\1 + p));"),
    (
        "precision",
        r"(wmma::mma_sync\((\w+), [^;]+;)",
        r"\1 for (int z = 0; z < \2.num_elements; ++z) \2.x[z] = __half2float(__float2half(\2.x[z]));",
    ),
    (
        "precision",
        r"(mma_m16n8k16\((\w+\[[^\]]+\]), [^;]+;)",
        r"\1 for (int z = 0; z < 4; ++z) \2[z] = __half2float(__float2half(\2[z]));",
    ),
    ("precision", r"float p = ([^;]+);", r"float p = rintf((\1) * 128.f) / 128.f;"),
    # --- the launch, and what must be refused
    ("launch", r"__launch_bounds__\(THREADS", "__launch_bounds__(THREADS / 2"),
    ("launch", r"\bdim3\(THREADS\)", "dim3(THREADS / 2)"),
    ("launch", r"\bdim3\(THREADS\)", "dim3(2 * THREADS)"),
    ("launch", r"\b(SMEM<D>|Tile<D>::SMEM), stream", r"\1 - 64, stream"),
    ("launch", r"\b(SMEM<D>|Tile<D>::SMEM), stream", r"2 * \1, stream"),
    ("contract", r"if \(!arguments_are_valid\(.+?return", "if (false) return"),
    ("contract", r"& 15\)", "& 1)"),
    ("contract", r" \| \(uintptr_t\)(k|v|o)\b", ""),
    ("contract", r" && len_(q|kv) > 0", ""),
    ("contract", r"if \(head_dim == 128\)", "if (head_dim)"),
    ("contract", r"if \(head_dim == 64\)", "if (head_dim <= 64)"),
    # --- several strips of rows a warp
    ("strips", r"\[s\]", "[0]"),
    ("strips", r"\[s\]", "[STRIPS - 1 - s]"),
    ("strips", r"\bs \* 16\b", "0"),
    ("strips", r"\bs < STRIPS\b", "s < STRIPS - 1"),
    ("strips", r"\b16 \* STRIPS\b", "16"),
    ("strips", r" \^ (\w+ \* (?:16|32|64|8))", r" + \1"),
    # --- mbarriers: who arrives, how often, at which
    ("arrivals", r"\bmbarrier_init\((.+), (.+?)\);", r"mbarrier_init(\1, (\2) + 1);"),
    ("arrivals", r"\bmbarrier_init\((.+), (.+?)\);", r"mbarrier_init(\1, (\2) * 2);"),
    ("arrivals", r"\bmbarrier_init\((.+), (.+?)\);", ";"),
    ("arrivals", r"\bmbarrier_arrive(_\w+)?\([^;]+\);", ";"),
    ("arrivals", r"if \(lane_id == 0\) (mbarrier_arrive)", r"\1"),
    ("arrivals", r"(mbarrier_arrive\([^;]+\);)", r"\1 \1"),
    ("arrivals", r"(mbarrier_\w+\()full_k", r"\1full_v"),
    ("arrivals", r"(mbarrier_\w+\()full_v", r"\1full_k"),
    ("arrivals", r"(mbarrier_\w+\()empty_k", r"\1empty_v"),
    ("arrivals", r"(mbarrier_\w+\()empty_v", r"\1empty_k"),
    ("arrivals", r"(mbarrier_\w+\(\w+) \+ \w+", r"\1"),
    # --- and which phase is waited for, by whom
    ("phases", r"\bmbarrier_wait(<\w+>)?\([^;]+\);", ";"),
    ("phases", r"\bmbarrier_wait(<\w+>)?\((.+), ([^,;]+)\);", r"mbarrier_wait\1(\2, (\3) ^ 1);"),
    ("phases", r"\bmbarrier_wait(<\w+>)?\((.+), ([^,;]+)\);", r"mbarrier_wait\1(\2, 0);"),
    ("phases", r"\bmbarrier_wait(<\w+>)?\(", r"if (threadIdx.x % 32 == 0) mbarrier_wait\1("),
    ("phases", r"\bmbarrier_wait(<\w+>)?\(", r"if (threadIdx.x % 128 < 96) mbarrier_wait\1("),
    ("phases", r"\bt / STAGES\b", "t"),
    ("phases", r"\(round - 1\)", "round"),
    ("phases", r"\bround > 0\b", "round > 1"),
    ("phases", r" [&^] 1\b", ""),
    # --- bytes
    ("bytes", r"(mbarrier_arrive_expect_tx\(.+), (.+?)\);", r"\1, (\2) + 16);"),
    ("bytes", r"(mbarrier_arrive_expect_tx\(.+), (.+?)\);", r"\1, (\2) - 1024);"),
    ("bytes", r"(mbarrier_arrive_expect_tx\(.+), (.+?)\);", r"\1, (\2) / 2);"),
    ("bytes", r"mbarrier_arrive_expect_tx\((.+), (.+?)\);", r"mbarrier_arrive(\1);"),
    ("bytes", r"\bQ_BYTES = (.+?),", r"Q_BYTES = \1 - 128,"),
    ("bytes", r"\bKV_BYTES = (.+?);", r"KV_BYTES = \1 / 2;"),
    # --- boxes of TMA
    ("boxes", r"\btma_(load|store)\w*\(.*\);", ";"),
    ("boxes", r"(\btma_\w+\(.+), head\);", r"\1, 0);"),
    ("boxes", r"(\btma_\w+\(.+), c \* SUB, ", r"\1, 0, "),
    ("boxes", r"(\btma_load\w*\(.+), (\w+) \* BN, ", r"\1, (\2 + 1) * BN, "),
    ("boxes", r"(\btma_\w+\(\w+ \+ )", r"\1 128 + "),
    ("boxes", r"&k_map", "&v_map"),
    ("boxes", r"&v_map", "&k_map"),
    ("boxes", r"\bc < D / SUB\b", "c < 1"),
    ("boxes", r"\bg \* 64\b", "0"),
    ("boxes", r"(make_tensor_map\(.+), len_(q|kv), (.+), (\w+)\)", r"\1, len_\2, \3, 32)"),
    ("boxes", r"(make_tensor_map\(&\w+, \w+, D, )len_kv", r"\1len_q"),
    # --- the two proxies
    ("proxies", r"\bfence_proxy_async\(\);", ";"),
    ("proxies", r"\bfence_proxy_async\(\);", "if (threadIdx.x % 128 == 0) fence_proxy_async();"),
    ("proxies", r"\bfence_mbarrier_init\(\);", ";"),
    ("proxies", r"\btma_store_commit\(\);", ";"),
    ("proxies", r"\btma_store_wait_read\(\);", ";"),
    # --- wgmma: when registers and stages are whose
    ("wgmma", r"\bwgmma_fence\([^;]*\);", ";"),
    ("wgmma", r"\bwgmma_commit\(\);", ";"),
    ("wgmma", r"\bwgmma_wait<\d>\([^;]*\);", ";"),
    ("wgmma", r"\bwgmma_wait<(\d)>", r"wgmma_wait<\1 + 1>"),
    ("wgmma", r"\bwgmma_m64k16<0>", "wgmma_m64k16<1>"),
    ("wgmma", r"\bwgmma_m64k16<1>", "wgmma_m64k16<0>"),
    ("wgmma", r"\bk != 0\b", "1"),
    ("wgmma", r"\bk != 0\b", "0"),
    ("wgmma", r"(k < \w+ / 16);", r"\1 - 1;"),
    ("wgmma", r"\bP_rmem\[k\]", "P_rmem[0]"),
    # --- where its operands lie
    ("descriptors", r", 1024\b", ", 512"),
    ("descriptors", r"\bSWIZZLE_128B\b", "SWIZZLE_64B"),
    ("descriptors", r"\bSWIZZLE_128B\b", "SWIZZLE_NONE"),
    ("descriptors", r"\bk % 4 \* 32\b", "k % 4 * 64"),
    ("descriptors", r"\bk % 4 \* 32\b", "k * 32"),
    ("descriptors", r"\bk / 4 \*", "k / 8 *"),
    ("descriptors", r"\bk \* 2048\b", "k * 1024"),
    ("descriptors", r"\b(BM|BN) \* 128\b", r"\1 * 64"),
    ("descriptors", r"\bgroup \* 64\b", "0"),
    ("descriptors", r" \+ stage_off\b", ""),
    ("descriptors", r"\b(T::)?([QKV]) = (\w+)(;|,)", r"\1\2 = \3 + 128\4"),
    # --- order of the pipeline: what runs beside what
    ("pipeline", r"\bissue_(qk|pv)\((.+?)\);", ";"),
    ("pipeline", r"\bissue_(qk|pv)\(t\);", r"issue_\1(t - 1);"),
    ("pipeline", r"\bissue_(qk|pv)\(t - 1\);", r"issue_\1(t);"),
    ("pipeline", r"\b(to_p|softmax|rescale|pack)\((.*?)\);", ";"),
    ("pipeline", r"\(t - 1\) % STAGES", "t % STAGES"),
    ("pipeline", r"\bt % STAGES\b", "(t + 1) % STAGES"),
    ("pipeline", r"\bt % STAGES\b", "0"),
    ("pipeline", r"\bstage \* T::KV_BYTES\b", "0"),
    ("pipeline", r"\bint t = 1; t < tiles\b", "int t = 1; t < tiles - 1"),
    # --- registers that warpgroups give and take
    ("register pool", r"\bregisters_claim<(.+?)>", r"registers_claim<(\1) + 8>"),
    ("register pool", r"\bregisters_release<(.+?)>\(\);", ";"),
    ("register pool", r"\bregisters_release<(.+?)>", r"registers_release<(\1) + 8>"),
    ("register pool", r"\bregisters_claim<(.+?)>\(\);", r"registers_claim<(\1) + 4>();"),
    # --- barriers of some warps
    ("named barriers", r"\bnamed_barrier_(sync|arrive)\([^;]+\);", ";"),
    ("named barriers", r"\bnamed_barrier_sync\([^;]+\);", "__syncwarp();"),
    ("named barriers", r"(named_barrier_\w+\(.+), (.+?)\);", r"\1, (\2) + 32);"),
    ("named barriers", r"(named_barrier_\w+\(.+), (.+?)\);", r"\1, (\2) + 1);"),
    ("named barriers", r"(named_barrier_\w+\()(.+), (.+?)\);", r"\g<1>1, \3);"),
    ("named barriers", r"(named_barrier_\w+\()(.+), (.+?)\);", r"\g<1>0, \3);"),
    # --- clusters: start, scope, whose memory, exit
    ("clusters", r"\bcluster_\w+\(\);", ";"),
    ("clusters", r"\bcluster_(\w+)\(\);", r"if (threadIdx.x < 128) cluster_\1();"),
    ("clusters", r"\brank \^ 1\b", "rank"),
    ("clusters", r"\bpeer\b(?! =)", "rank"),
    ("clusters", r"\bpeer\b(?! =)", "0"),
    ("clusters", r"\bremote_\w+(?:<\w+>)?\([^;]*\);", ";"),
    ("clusters", r"\bSCOPE_CLUSTER\b", "SCOPE_CTA"),
    ("clusters", r"\bmbarrier_wait<SCOPE_CLUSTER>", "mbarrier_wait"),
    ("clusters", r"\bMULTICAST_MASK\b|\b0x3\b|\b3u?(?=\)\))", "1"),
    ("clusters", r"\bCLUSTER\b(?! =)", "(CLUSTER / 2)"),
    # --- and what the halves add up to
    ("merge", r"\b(keys_begin|first_key|k_begin)\b(?! =)", "0"),
    ("merge", r"\b(mine|theirs|own_factor|peer_factor)\b(?! =)", "1.f"),
    ("merge", r"(O_\w+\[[^\]]+\]) \* (\w+(?:\[\w+\])?) \+", r"\1 +"),
    ("merge", r"\b(peer_m|peer_l|m_peer|l_peer)\b(?! =)(\[\w+\])?", "0.f"),
    ("merge", r"fmaxf\((m_rmem\[\w\]), (\w+(?:\[\w\])?)\)", r"\1"),
)


# The same in other words, stricter, or once more rounded to fp16, as P and O are: none may be found.
HARMLESS: tuple[Rule, ...] = (
    ("barriers", r"__syncthreads\(\);", "__syncthreads(); __syncthreads();"),
    ("barriers", r"__syncwarp\(\);", "__syncwarp(); __syncwarp();"),
    ("waits", r"__pipeline_wait_prior\([^0;][^;]*\);", "__pipeline_wait_prior(0);"),
    ("waits", r"__pipeline_commit\(\);", "__pipeline_commit(); __pipeline_commit();"),
    ("lanes", r"\blane_id == 0\b", "lane_id == 31"),
    ("lanes", r"\bint o = 16; o > 0; o >>= 1\b", "int o = 1; o < 32; o <<= 1"),
    ("lanes", r"(\w+) / 4\b", r"(\1 >> 2)"),
    ("lanes", r"(\w+) % 4\b", r"(\1 & 3)"),
    ("lanes", r"(\w+) % 32\b", r"(\1 & 31)"),
    ("loops", r"\+\+(\w+)\)", r"\1 += 1)"),
    ("loops", r"\bint h = 0; h < 2; \+\+h\b", "int h = 1; h >= 0; --h"),
    ("loops", r"\bint n = 0; n < BN; n \+= 16\b", "int n = BN - 16; n >= 0; n -= 16"),
    ("loops", r"\bint k = 0; k < BN / 16; \+\+k\b", "int k = BN / 16 - 1; k >= 0; --k"),
    ("loops", r"\bint i = 0; i < VEC; \+\+i\b", "int i = VEC - 1; i >= 0; --i"),
    ("bounds", r"(?<![+*/-] )(\b\w+) < (\w+)(?=[;\)])", r"!(\1 >= \2)"),
    ("bounds", r"(\b\w+) >= (\w+)\b", r"\2 <= \1"),
    ("sums", r"\b(sum|l|dot|u) \+= ([^;]+);", r"\1 = (\2) + \1;"),
    ("sums", r"fmaxf\((\w+), (\w+(?:\([^()]*\)|\[[^\[\]]*\])?)\)", r"fmaxf(\2, \1)"),
    ("rounding", r"__expf\(", "expf("),
    ("rounding", r"float inv_l = ([^;]+);", r"float inv_l = __half2float(__float2half(\1));"),
    ("rounding", r"exp2_approx\(", "exp2f("),
    ("rounding", r"__fdividef\(1\.f, l\)", "1.f / l"),
    ("rounding", r"1\.f / l\b", "__frcp_rn(l)"),
    ("rounding", r"dot \* scale\b", "scale * dot"),
    ("rounding", r"\bl_old \* correction \+ sum\b", "fmaf(l_old, correction, sum)"),
    ("layout", r"\b(LD|KT_LD|S_LD|O_LD|U_LD|P_LD) = (\w+) \+ 8;", r"\1 = \2 + 16;"),
    ("start", r"\bM_START\b(?! =)", "(0.5f * M_START)"),
    ("types", r"\bconst (int|float) (\w+) = ", r"\1 \2 = "),
)


@dataclass(frozen=True)
class Mutant:
    """A version with one place of one file changed."""

    version: Version
    category: str
    file: str
    line: int  # 1-based
    text: str  # the line afterwards

    @property
    def name(self) -> str:
        """Where and what, in a line."""
        return f"{self.version.id} {self.file}:{self.line} {self.category}: {self.text.strip()}"


@dataclass
class Outcome:
    """What came of a mutant."""

    mutant: Mutant
    caught_by: dict[str, str]  # by workload: the kind of defect, or "numbers"
    word: str  # caught, survives, changes nothing, does not compile
    seconds: float = 0.0
    largest_error: float = 0.0  # over the runs of the check that came back, over what is allowed there
    differs_on: str = ""  # a survivor's first workload on which a bit differs


def budget_of(version: Version) -> int:
    """The bytes of shared memory that a block of the version may have."""
    return version.budget.shared_bytes or SHARED_BUDGET_BYTES


def split_comment(line: str) -> tuple[str, str]:
    """The code of a line and its comment."""
    code, mark, comment = line.partition("//")
    return code, mark + comment


def mutants_of(version: Version, rules: Sequence[Rule] = RULES) -> Iterator[Mutant]:
    """Every mutant that the rules make of a version's source and of common.cuh, without its ONLY builds."""
    assert version.source is not None
    seen: set[tuple[str, int, str]] = set()
    if '"hopper.cuh"' not in version.source.read_text(encoding="utf-8"):
        rules = [rule for rule in rules if rule[0] not in _ASYNCHRONOUS]
    for path in (version.source, PROJECT_KERNELS / "common.cuh"):
        lines = path.read_text(encoding="utf-8").splitlines()
        begin = (
            next((i for i, line in enumerate(lines) if "FULL_WARP =" in line), 0)
            if path.suffix == ".cuh"
            else 0
        )
        end = next((i for i, line in enumerate(lines) if "What the ONLY builds add" in line), len(lines))
        for number, line in enumerate(lines[begin:end], begin + 1):
            code, comment = split_comment(line)
            if not code.strip() or _LEFT_ALONE.search(line):
                continue
            is_planted = bool(_PLANTED.search(line))
            for category, pattern, replacement in rules:
                if is_planted and category not in _ASYNCHRONOUS:
                    continue
                if bool(_CALLERS.search(line)) is not (category in _OF_CALLERS):
                    continue
                for match in re.finditer(pattern, code):
                    changed = code[: match.start()] + match.expand(replacement) + code[match.end() :]
                    key = (path.name, number, " ".join(changed.split()))
                    if key in seen or changed == code:
                        continue
                    seen.add(key)
                    yield Mutant(version, category, path.name, number, changed + comment)


def drawn(mutants: Sequence[Mutant], most: int, seed: int = 14) -> list[Mutant]:
    """At most so many, the categories in turn, drawn within each."""
    by_category: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in mutants:
        by_category[mutant.category].append(mutant)
    draw = random.Random(seed)
    for group in by_category.values():
        draw.shuffle(group)
    chosen: list[Mutant] = []
    while len(chosen) < most and any(by_category.values()):
        for group in by_category.values():
            if group and len(chosen) < most:
                chosen.append(group.pop())
    return chosen


class Campaign:
    """Builds and runs mutants, a thread at a time with an emulator of its own."""

    def __init__(self, folder: Path, *, survey: bool, harmless: bool) -> None:
        self.folder, self.survey, self.harmless = folder, survey, harmless
        self._local = threading.local()
        self._lock = threading.Lock()
        self._outputs: dict[tuple[str, str], bytes] = {}

    @property
    def emulator(self) -> Emulator:
        """This thread's."""
        if not hasattr(self._local, "emulator"):
            self._local.emulator = Emulator()
        emulator: Emulator = self._local.emulator
        return emulator

    def run(self, mutant: Mutant) -> Outcome:
        """Build it, check it as `profiler check` does, and look at what survives more closely."""
        version = mutant.version
        assert version.source is not None
        with tempfile.TemporaryDirectory(dir=self.folder) as scratch:
            kernels = Path(scratch) / "kernels"
            shutil.copytree(version.source.parent, kernels)
            path = kernels / mutant.file
            lines = path.read_text(encoding="utf-8").splitlines()
            lines[mutant.line - 1] = mutant.text
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
            try:
                # One folder for all: the runtime is compiled once, and libraries differ by their hash.
                library = build_cpu_library(
                    kernels / version.source.name, version.flags, (kernels,), self.folder / "build"
                )
            except BuildFailed:
                return Outcome(mutant, {}, "does not compile")
            outcome = self._check(mutant, library)
            if outcome.word == "survives" and not self.harmless:
                outcome.differs_on = self._first_difference(mutant, library)
                if not outcome.differs_on:
                    outcome.word = "changes nothing"
            library.unlink()
        return outcome

    def _check(self, mutant: Mutant, library: Path) -> Outcome:
        version = mutant.version
        outcome = Outcome(mutant, {}, "survives")
        workloads = version_workloads(ATTENTION, version)
        for workload in workloads:
            for seed in SURVEY_SEEDS if self.survey else range(SEEDS_GOOD):
                case = ATTENTION.case(workload, seed)
                result = self.emulator.run(
                    library,
                    ATTENTION.symbol,
                    case,
                    Schedule(seed),
                    budget_bytes=budget_of(version),
                    time_limit_s=TIME_LIMIT_S,
                )
                outcome.seconds += result.seconds
                if not result.passed:
                    kind = result.defects[0].kind if result.defects else "numbers"
                    outcome.caught_by[workload.label] = kind
                    outcome.word = "caught"
                    if not self.survey:
                        return outcome
                    break
                error = np.abs(case.output.astype(np.float64) - case.reference)
                magnitude = np.abs(case.reference) if case.magnitude is None else case.magnitude
                allowed = case.tolerance.absolute + case.tolerance.relative * magnitude
                outcome.largest_error = max(outcome.largest_error, float((error / allowed).max()))
        options = {"budget_bytes": budget_of(version)}
        contract = check_contract(version, ATTENTION, library, workloads, self.emulator, options)
        if contract and contract.defects:
            outcome.caught_by["contract"] = contract.defects[0].text
            outcome.word = "caught"
        return outcome

    def _first_difference(self, mutant: Mutant, library: Path) -> str:
        """The label of the first workload on which a bit of its output is not the good version's."""
        version = mutant.version
        for head_dim in version.head_dims:
            for batch, heads, len_q, len_kv, causal, inputs in WIDE:
                workload = ATTENTION.workload(
                    batch=batch,
                    heads=heads,
                    len_q=len_q,
                    len_kv=len_kv,
                    head_dim=head_dim,
                    causal=causal,
                    dtype=version.dtype,
                    inputs=inputs,
                )
                for seed in (0, 5):
                    good = self._good_output(version, workload, seed)
                    case = ATTENTION.case(workload, seed)
                    result = self.emulator.run(
                        library,
                        ATTENTION.symbol,
                        case,
                        Schedule(seed),
                        budget_bytes=budget_of(version),
                        time_limit_s=TIME_LIMIT_S,
                    )
                    if result.returned != 0 or result.defects or case.output.tobytes() != good:
                        return f"{workload.label}, seed {seed}"
        return ""

    def _good_output(self, version: Version, workload: Any, seed: int) -> bytes:
        key = (version.id, f"{workload.label} {seed}")
        with self._lock:
            known = self._outputs.get(key)
        if known is None:
            assert version.source is not None
            library = build_cpu_library(version.source, version.flags, (version.source.parent,))
            case = ATTENTION.case(workload, seed)
            with Emulator() as emulator:
                emulator.run(library, ATTENTION.symbol, case, Schedule(seed))
            known = case.output.tobytes()
            with self._lock:
                self._outputs[key] = known
        return known


def main(argv: Sequence[str] | None = None) -> int:
    """Print the share that is caught, by category, and every survivor; 1 where the target is not met."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--most", type=int, default=MOST_A_VERSION, help="mutants a version")
    parser.add_argument("--versions", default="")
    parser.add_argument("--category", default="")
    parser.add_argument("--harmless", action="store_true", help="rewrites that must pass")
    parser.add_argument("--seed", type=int, default=14, help="of which mutants are drawn")
    parser.add_argument("--survey", action="store_true", help="every workload, to see which are needed")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--count", action="store_true", help="how many there are; runs nothing")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args(argv)
    catalog = load_catalog(PROJECT_KERNELS / "catalog.toml")
    wanted = set(filter(None, arguments.versions.split(",")))
    versions = [
        version
        for version in catalog.versions
        if version.state == "good" and version.source and (not wanted or version.id in wanted)
    ]
    rules = HARMLESS if arguments.harmless else RULES
    mutants = [
        mutant
        for version in versions
        for mutant in drawn(
            [m for m in mutants_of(version, rules) if arguments.category in ("", m.category)],
            arguments.most,
            arguments.seed,
        )
    ]
    if arguments.count:
        for version in versions:
            print(version.id, len(list(mutants_of(version, rules))))
        print(Counter(m.category for m in mutants))
        return 0
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(arguments.jobs) as pool:
        campaign = Campaign(Path(folder), survey=arguments.survey, harmless=arguments.harmless)
        outcomes = []
        for outcome in pool.map(campaign.run, mutants):
            outcomes.append(outcome)
            print(f"\r{len(outcomes)} of {len(mutants)}", end="\r", file=sys.stderr, flush=True)
            if arguments.out:  # after each, so that a campaign that is broken off keeps what it has seen
                write_outcomes(outcomes, arguments.out)
            if arguments.harmless:
                if outcome.word == "caught":
                    print(f"found: {outcome.mutant.name}: {outcome.caught_by}", flush=True)
            elif outcome.word == "survives":
                print(
                    f"survives: {outcome.mutant.name}\n    differs on {outcome.differs_on}; "
                    f"error {outcome.largest_error:.2f} of what is allowed",
                    flush=True,
                )
    return report(outcomes, harmless=arguments.harmless, survey=arguments.survey)


def write_outcomes(outcomes: Sequence[Outcome], out: Path) -> None:
    """Write what came of every mutant, as JSON."""
    rows = [
        {
            "version": o.mutant.version.id,
            "category": o.mutant.category,
            "file": o.mutant.file,
            "line": o.mutant.line,
            "text": o.mutant.text.strip(),
            "word": o.word,
            "caught_by": o.caught_by,
            "largest_error": o.largest_error,
            "differs_on": o.differs_on,
            "seconds": round(o.seconds, 2),
        }
        for o in outcomes
    ]
    out.write_text(json.dumps(rows, indent=1))


def report(outcomes: Sequence[Outcome], *, harmless: bool, survey: bool) -> int:
    """Print the table."""
    print(f"{'category':12}{'caught':>8}{'survive':>9}{'nothing':>9}{'no build':>10}")
    for category in dict.fromkeys(o.mutant.category for o in outcomes):
        words = Counter(o.word for o in outcomes if o.mutant.category == category)
        print(
            f"{category:12}{words['caught']:8}{words['survives']:9}{words['changes nothing']:9}"
            f"{words['does not compile']:10}"
        )
    words = Counter(o.word for o in outcomes)
    if harmless:
        count = len(outcomes) - words["does not compile"]
        print(f"harmless rewrites with a finding: {words['caught']} of {count} (target 0)")
        return 1 if words["caught"] else 0
    count = words["caught"] + words["survives"]
    share = 100 * words["caught"] / count if count else 100.0
    print(f"caught: {words['caught']} of {count} that change anything, {share:.1f} % (target {TARGET} %)")
    # Without --survey a mutant stops at the first workload that catches it, in their order.
    which = Counter(next(iter(o.caught_by)) for o in outcomes if len(o.caught_by) == 1)
    for label, number in which.most_common():
        print(f"  {number:4} are caught on {label} {'alone' if survey else 'first'}")
    return 0 if share >= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
