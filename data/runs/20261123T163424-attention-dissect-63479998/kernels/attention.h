// The one C signature of every version: O = softmax(Q K^T * scale) V.
//
// q      [batch, heads, len_q,  head_dim]  fp16; 8-bit codes in the fp8 versions
// k, v   [batch, heads, len_kv, head_dim]  fp16; 8-bit codes in the fp8 versions
// o      [batch, heads, len_q,  head_dim]  fp16; every element is written
//        (ONLY=QK and ONLY=SOFTMAX builds write fp32 [batch, heads, len_q, len_kv] instead: see common.cuh)
// scales [3, batch, heads] fp32, the scales of q, k and v a head, in the fp8 versions; NULL elsewhere
//
// All contiguous, 16-byte aligned. head_dim is 64 or 128; any lengths of at least 1; scale > 0.
// causal: key j is visible to query i where j <= i + len_kv - len_q (the masks' ends meet). A query that sees
// no key (i < len_q - len_kv) gets zeros.
// stream is a cudaStream_t. Returns a cudaError_t: 0, or 1 (cudaErrorInvalidValue) for sizes and a scale that
// the version does not take and for addresses that are not aligned.
#pragma once

#ifdef __cplusplus
extern "C"
#endif
int attention_forward(const void* q, const void* k, const void* v, void* o, const float* scales, int batch,
                      int heads, int len_q, int len_kv, int head_dim, float scale, int causal, void* stream);
