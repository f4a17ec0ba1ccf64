// speed.h: measures how fast a compute backend is, and estimates from that how long its calls take.
#ifndef RLHF_HOST_ESTIMATE_SPEED_H
#define RLHF_HOST_ESTIMATE_SPEED_H

#include "estimate/quantised_speed.h"

// Measures the speed of a large matrix product (GEMM) in `dtype`, in floating-point operations
// (FLOPs) per second. The run has about `flops` of them: on a fast backend, the measurement takes
// about 1 % of their time, but not more than 50 ms. Returns 0 if the speed cannot be measured.
// [step]
double rlhf__speed_peak(const rlhf_compute *, int32_t dtype, double flops);
// Returns the bytes of host memory that the measurement needs. [any]
uint64_t rlhf__speed_peak_bytes(const rlhf_compute *, int32_t dtype);

// Speeds of a backend on this machine.
struct rlhf__speed {
    double product;   // FLOPs per second of a large GEMM
    double memory;    // bytes per second that an elementwise operation reads and writes
    double attention; // FLOPs per second of attention
    double word;      // logits per second of the LM head, apart from its GEMM
    double share; // processor time of large GEMMs, divided by the threads' elapsed time; 0: unknown
    struct rlhf__quantised_speed quantised[RLHF_FORMAT_Q5_1 + 1]; // by enum rlhf_format
};

// Measures *out in about 2 % of the time of a run with `flops` FLOPs, but in not more than 0.1 s.
// The speeds are those of the fastest calls. If other programs use the processors, that of GEMMs is
// by processor time, and the measurement takes about four times as long. Returns 0 if the speeds
// cannot be measured, among others because the backend is too slow for the measurement, or is not a
// CPU. Then *out is all 0. The speeds of quantised weights are left 0;
// rlhf__quantised_speed_measure measures them. [step]
int rlhf__speed_measure(const rlhf_compute *, int32_t dtype, double flops, struct rlhf__speed *out);

// Returns 1 if other programs used the threads' processors during the measurement. [any]
int rlhf__speed_busy(const struct rlhf__speed *);

// Returns an estimate of the seconds that a call takes. Reads the same members as workspace_bytes
// of the table. [any]
double rlhf__speed_seconds(const struct rlhf__speed *, const rlhf_call *);

#endif
