// bench.h: what the parts of rlhf-bench share: the clock, the loaded backend, and the output of a
// result line.
//
// rlhf-bench does not contain the host. It loads kernels and models as the host does, from
// ../lib/rlhf/1 relative to the program.
#ifndef RLHF_BENCH_H
#define RLHF_BENCH_H

#include <rlhf/compute.h>
#include <rlhf/model.h>
#include <rlhf/test.h>

struct bench {
    const rlhf_compute *c;
    const struct rlhf_test_backend *kernels; // the backend that opened c
    char lib_dir[4096];                      // .../lib/rlhf/1
    const char *backend;                     // its name, or a path
    const char *model;                       // name of the plugin
    int tiny;                                // shapes suitable for an emulated device
    uint32_t threads;                        // 0: all cores
    int cpu_time;                            // measure CPU time of the process instead of wall time
    int32_t dtype;                           // dtype of activations in the model parts
    int only_dtype;                          // 1: --dtype was given; measure only this dtype
    double peak_bf16, peak_f32;              // GFLOP/s, best shape; 0 until measured
    int rows, len, slots, prompt, fresh;     // shapes of the training step and of decoding
    int microbatch;                          // tokens of a training step's passes; 0: all
    int rank;                                // of a low-rank adapter on all linear layers; 0: none
    int rounds;                              // rounds of alternating measurements
    int count; // > 0: run this many steps without measuring, for counting instructions externally
    char *const *set; // key=value for the model's integer options, NULL-terminated
};

// Waits until the device has finished all queued work, and returns the seconds of the chosen clock.
double bench_now(const struct bench *b);

// Ends the program with the backend's error text if a call failed.
void bench_check(const struct bench *b, rlhf_status st, const char *what);
void bench_die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

// Returns a device buffer of n elements that are filled with small random numbers.
rlhf_dev bench_random(const struct bench *b, uint64_t n, int32_t dtype);

void *bench_zeros(size_t n); // n zeroed 32-bit numbers; release with free()

// Returns the measured peak of b's dtype, in GFLOP/s.
double bench_peak_of(const struct bench *b);

// Loads b->backend, which is a name or a path, and creates its table of operations with b->threads.
void bench_load(struct bench *b);

// Returns a device buffer of n integers (`first` + i * `step`) modulo `of`.
rlhf_dev bench_numbers(const struct bench *b, uint64_t n, uint64_t first, uint64_t step,
                       uint64_t of);

void bench_peak(struct bench *b); // fills peak_bf16 and peak_f32
void bench_memory(
    const struct bench *b); // a copy, a sum of squares, AdamW; row kernels compared with the copy
void bench_ops(
    const struct bench *b); // each GEMM of a GPT-2 124M step, and some GEMMs of Qwen2.5-0.5B
void bench_quantised(const struct bench *b); // a layer's GEMMs, packed and quantised
void bench_decoder(const struct bench *b);   // the row ops of Qwen2.5-0.5B compared with the copy
void bench_grouped(const struct bench *b, double copy); // attention of Qwen2.5-0.5B; copy: GB/s

// Returns how many seconds the attention of one layer takes, forward and backward, in b->dtype,
// with heads of width 64.
double bench_attention_time(const struct bench *b, uint32_t rows, uint32_t len, int32_t heads,
                            int32_t kv_heads);

// Measures the cost of a token in gpt2 models, for different numbers of rows, tokens per row,
// layers and widths.
void bench_curve(const struct bench *b);

// Computes rows of GEMMs of many shapes alone and in batches, and compares the results bit for bit.
// Ends the program if the backend claims row exactness, but rows differ.
void bench_exact(const struct bench *b);

// Measures each operation of a training step and of a decode step.
void bench_profile(const struct bench *b);

// Runs some phases of the default PPO run in a temporary directory, and measures them. Starts the
// rlhf-host that is in the same directory as this program.
void bench_phase(const struct bench *b);

// Measures how many steps per second env_exec.so and env_python.so answer.
void bench_environments(const struct bench *b);
void bench_game(void); // the program that bench_environments runs: it answers turns with texts

// Measures how many rows per second the rewards exec.so and python.so score.
void bench_programs(const struct bench *b);
void bench_answer(void); // the program that bench_programs runs: it prints 1 for each input line

#endif
