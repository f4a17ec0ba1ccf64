// emu.h: emulates CUDA on a machine without it: every CUDA thread is a fiber of one OS thread, and
// blocks run one after another in a seeded order. Each file in emu/ holds one part.
//
// Errors it detects: barriers that not all threads reach, barriers and warp operations of different
// source lines that meet, shuffles from lanes outside the mask, accesses outside device and shared
// memory, shared memory and asynchronous copies read before they are written (NaN), copies that are
// never waited for, misaligned addresses, more shared memory than allowed, grids and blocks that
// are too large. Compiled with -fsanitize=thread it finds races: every CUDA thread is a thread to
// the race detector. EMU_SEED (0, 1, 2 ...) selects the order of threads and blocks and when copies
// happen; results must not depend on it.
//
// It does not model time, concurrent blocks, or the rounding of tensor cores.
#ifndef RLHF_TESTS_CUDA_EMU_H
#define RLHF_TESTS_CUDA_EMU_H

#include "emu/types.h"

#include "emu/launch.h"
#include "emu/matrix.h"
#include "emu/warp.h"
#include "emu/word.h"

#endif
