// figures.h: reads and writes JSON files with the figures from which a forecast is computed: the
// shape of a planned run, the measurements of that run on one machine, and the network between
// ranks.
#ifndef RLHF_TOOLS_SCALE_FIGURES_H
#define RLHF_TOOLS_SCALE_FIGURES_H

#include "base/error.h"

#include <jansson.h>

enum { RLHF__SCALE_POINTS = 16, RLHF__SCALE_LENGTHS = 1024 };

// A duration that grows with something: `seconds` for `x` rows or tokens.
struct rlhf__scale_point {
    double x, seconds;
};

// Points in ascending order of x. If `n` is 0, the duration is always 0.
struct rlhf__scale_curve {
    uint32_t n, reserved;
    struct rlhf__scale_point at[RLHF__SCALE_POINTS];
};

// The shape of the planned run. Whole numbers unless stated otherwise.
struct rlhf__scale_plan {
    double rows;  // rows of a phase, over all ranks
    double group; // rows that are dealt together
    double whole; // cut minibatches only between groups: 2: always; 1: if enough groups; 0: no
    double minibatches; // of an epoch
    double epochs;
    double shards;       // parts of a minibatch (parallel.shards); 0: as many as ranks
    double parameters;   // trained, policy and critic
    double tied;         // their share (0 .. 1) that is not in layers: embeddings, heads, critic
    double microbatch;   // most tokens of a microbatch; 0: no limit
    double moments;      // values that the optimizer keeps for each parameter
    double reward_dealt; // 1: each rank calls the rewards for its own rows; 0: rank 0 for all rows
    double overlaps;     // 1: gradients and weights are sent during the passes; 0: between them
};

// Measurements with one process that had the whole machine, or the whole device.
struct rlhf__scale_machine {
    char compute[256]; // the backend and its instruction set, for people
    double shared;     // 1: ranks on one machine share its cores and memory; 0: each has a device
    double threads;    // 1 or more
    double rows;       // of the measured phase
    double tokens;     // of these rows
    struct rlhf__scale_curve draw;  // x: rows
    struct rlhf__scale_curve learn; // x: tokens; forward, loss and backward without a step
    // Seconds for the measured rows. `other` is the rest of a rank's work for its own rows.
    double passes, reward, other;
    double fixed;                       // seconds of a phase for what every rank does alike
    double step, pack;                  // seconds of one optimizer step and of packing the weights
    double copy;                        // bytes copied per second
    double products;                    // FLOPs of matrix products per second while learning
    double decode_flops;                // FLOPs of matrix products for drawing one token
    uint32_t n_lengths, reserved;       // at least 1
    double length[RLHF__SCALE_LENGTHS]; // tokens of each row
    double memory, memory_moments, memory_rows, memory_undo; // bytes at the peak; parts of it
};

// The network between ranks.
struct rlhf__scale_line {
    char detail[256]; // for people; "" if it was typed
    double bytes;     // per second, each way, for one rank while `locals` ranks of a machine send
    double locals;
    double latency; // seconds, one way
    double slowed;  // share of its speed that a computation loses during an exchange; typed: 0
    // Seconds of an exchange with every other rank, for several numbers of bytes per rank. Its `n`
    // is 0 if the user typed the network's figures.
    struct rlhf__scale_curve exchange;
};

struct rlhf__scale_figures {
    struct rlhf__scale_plan plan;
    struct rlhf__scale_machine machine;
    struct rlhf__scale_line line;
    int32_t has_run, has_line; // 1: plan and machine are set; line is set
};

// Add the contents of the file to *f. Errors: RLHF_E_INVALID; the message names the file, the
// field, the value and the allowed values. [main]
rlhf_status rlhf__scale_figures_read(const char *path, struct rlhf__scale_figures *f,
                                     struct rlhf__error *err);

// Before a measurement, check that its results can be stored in the file `path`. If the file
// exists, also add its contents to *f. Errors: RLHF_E_INVALID, also for a file of another kind.
// [main]
rlhf_status rlhf__scale_figures_before(const char *path, struct rlhf__scale_figures *f,
                                       struct rlhf__error *err);

// Returns the contents of f as a JSON object; NULL if out of memory. [main]
json_t *rlhf__scale_figures_json(const struct rlhf__scale_figures *f);

// Read "RATE,LATENCY", such as 10gbit,20us. Errors: RLHF_E_INVALID. [main]
rlhf_status rlhf__scale_line_typed(const char *text, struct rlhf__scale_line *out,
                                   struct rlhf__error *err);

#endif
