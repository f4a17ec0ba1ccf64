// bench.h: what the parts of rlhf-bench share: the clock, the loaded backend, one result line.
//
// What it is not: it includes nothing of the host; kernels and models are loaded as the host loads
// them, from ../lib/rlhf/0 beside the program.
#ifndef RLHF_BENCH_H
#define RLHF_BENCH_H

#include <rlhf/compute.h>
#include <rlhf/model.h>

struct bench {
    const rlhf_compute *c;
    char lib_dir[4096];                  // .../lib/rlhf/0
    const char *backend;                 // its name, or a path
    const char *model;                   // name of the plugin
    int tiny;                            // shapes that an emulated device can do
    uint32_t threads;                    // 0: all cores
    int cpu_time;                        // count processor time of the process instead of wall time
    int32_t dtype;                       // act dtype of the model parts
    int only_dtype;                      // it was given: measure no other
    double peak_bf16, peak_f32;          // GFLOP/s, best shape; 0 until measured
    int rows, len, slots, prompt, fresh; // shapes of the training step and of decoding
    int rank;                            // of a low-rank adapter on all linear layers; 0: none
    int rounds;                          // of alternating measurements
    int count; // > 0: so many steps and nothing measured, for who counts instructions from outside
    const char *part; // of what --only names; "": all
    char *const *set; // key=value for the model's integer options, NULL-ended
};

// Seconds of the chosen clock, once the device has done all that was begun.
double bench_now(const struct bench *b);

// Ends the program with the backend's text when a call failed.
void bench_check(const struct bench *b, rlhf_status st, const char *what);
void bench_die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

// A device buffer of n elements filled with small random numbers.
rlhf_dev bench_random(const struct bench *b, uint64_t n, int32_t dtype);

void *bench_zeros(size_t n); // n zeroed 32-bit numbers; free()

// Peak of the dtype that b works in, GFLOP/s.
double bench_peak_of(const struct bench *b);

// Loads b->backend, a name or a path, and makes its table with b->threads.
void bench_load(struct bench *b);

// n integers (first + i * step) modulo `of`, on the device.
rlhf_dev bench_numbers(const struct bench *b, uint64_t n, uint64_t first, uint64_t step,
                       uint64_t of);

void bench_peak(struct bench *b); // fills peak_bf16 and peak_f32
void bench_memory(
    const struct bench *b); // copy, sum of squares, AdamW; row kernels beside the copy
void bench_ops(
    const struct bench *b); // each product of a GPT-2 124M step, and some of Qwen2.5-0.5B
void bench_decoder(const struct bench *b); // the row ops of Qwen2.5-0.5B beside the copy
void bench_grouped(const struct bench *b, double copy); // its attention; copy: GB/s

// Attention of one layer with heads of 64, forward and backward, in b->dtype: seconds.
double bench_attention_time(const struct bench *b, uint32_t rows, uint32_t len, int32_t heads,
                            int32_t kv_heads);

// Cost of a token by rows, tokens a row, layers and width of a gpt2 model.
void bench_curve(const struct bench *b);

// Rows of products of many shapes, alone and in company, bit for bit. Ends the program when rows of
// a row-exact backend differ.
void bench_exact(const struct bench *b);

// The same work exact and with kernels_cpu_free.so, alternating: what exactness costs.
void bench_exactness(const struct bench *b);

// Where a training step and a decode step spend their time, operation by operation.
void bench_profile(const struct bench *b);

// Some phases of the default PPO run by the rlhf-host beside this program, from a temporary
// directory.
void bench_phase(const struct bench *b);
struct phase_times { // seconds, of the phase that took the least
    double training, rollout, reward, reference, update;
    double difference_max, difference_mean; // of log-probs of sampling and training
};
struct phase_times bench_phase_times(const struct bench *b);

// Rows a second of rewards that are programs.
void bench_programs(const struct bench *b);
void bench_answer(void); // the program that they are: 1 for each line of standard input

#endif
