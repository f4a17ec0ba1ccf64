// emu.h: emulates CUDA on a machine without it. Every CUDA thread is a fiber of one OS thread, and
// blocks run one after another in a seeded order. Each file in emu/ holds one part.
//
// It detects these errors:
//   - barriers that not all threads reach
//   - threads that meet at a barrier or a warp operation from different source lines
//   - shuffles from lanes outside the mask
//   - accesses outside device and shared memory, and misaligned addresses
//   - shared memory or the target of an asynchronous copy that is read before it is written (NaN)
//   - copies that are never waited for
//   - more shared memory than allowed, and grids and blocks that are too large
//   - with -fsanitize=thread, races: the race detector treats every CUDA thread as a thread
// EMU_SEED (0, 1, 2 ...) selects the order of threads and blocks and the time of copies. Results
// must not depend on it.
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
