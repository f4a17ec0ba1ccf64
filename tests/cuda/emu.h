// emu.h: CUDA for a machine without it: every CUDA thread is a fiber of one OS thread, blocks run
// one after another in a seeded order. One noun a file in emu/.
//
// What it finds while it emulates: barriers that not all threads reach, barriers and warp
// operations of different source lines that meet, shuffles from lanes outside the mask, accesses
// outside device and shared memory, shared memory and asynchronous copies that are read before
// they are there (NaN), copies that are never waited for, addresses that are not aligned, more
// shared memory than was allowed, too large grids and blocks. Compiled with -fsanitize=thread it
// finds races: every CUDA thread is a thread to the race detector. EMU_SEED (0, 1, 2 ...) chooses
// the order of threads and blocks and when copies happen; no result may depend on it.
//
// What it is not: a model of time, of several blocks at once, or of the rounding of tensor cores.
#ifndef RLHF_TESTS_CUDA_EMU_H
#define RLHF_TESTS_CUDA_EMU_H

#include "emu/types.h"

#include "emu/launch.h"
#include "emu/matrix.h"
#include "emu/warp.h"
#include "emu/word.h"

#endif
