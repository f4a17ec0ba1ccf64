// tests/models/recorder.h: wraps a compute table that cannot record calls in a table that can. It
// checks that both sides follow the rules of `record` in rlhf/compute.h.
//
// The first time that a key is used, its calls are simply executed. The second time they are
// recorded, and executed in record_end. From then on they are replayed. A release drops all
// recordings. Calls that are not allowed inside a recording are refused and noted.
#ifndef TESTS_MODELS_RECORDER_H
#define TESTS_MODELS_RECORDER_H

#include <rlhf/compute.h>

struct recorded_op;

struct recording {
    uint64_t key;
    uint32_t n, captured; // recorded calls
    struct recorded_op *ops;
};

enum { RECORDINGS = 64 };

struct recorder {
    const rlhf_compute *inner;
    rlhf_compute table;
    struct recording kept[RECORDINGS];
    uint32_t n;
    int32_t what, inside, reserved; // state of the open recording
    struct recording *open;
    int32_t runs, captures, replays, drops;
    uint64_t downloads, uploads, waits; // outside of recordings
    char broken[128];                   // the first rule that a caller broke, "" = none
};

// The new table is &r->table. `inner` must outlive it.
void recorder_init(struct recorder *r, const rlhf_compute *inner);
void recorder_finish(struct recorder *r);

#endif
