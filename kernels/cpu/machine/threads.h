// threads.h: the threads of a table. rlhf__split_run and the other functions of split.h divide
// loops among them.
//
// A region is one call of a function on several threads at the same time. Its work is numbered, one
// share for each thread. The caller does share 0, and thread i does share i. If the caller has
// finished before a thread has begun its share, because the thread still sleeps or has no
// processor, the caller does that share, too. So a region never waits for a thread that does
// nothing, and it also ends in a process made by fork(), which has only the calling thread.
//
// Between two regions, and at the end of a region, threads first spin and then sleep. They spin for
// about as long as it takes to wake a thread. If there are more threads than allowed processors,
// they hardly spin, because this would delay the threads that work.
//
// The threads block signals, except those of faults. They run on the processors that the thread
// which created them may use. They compute in the floating-point modes (rounding, denormals) of the
// region's caller. Debuggers show them as rlhf-cpu-1, rlhf-cpu-2, ...
#ifndef RLHF_CPU_MACHINE_THREADS_H
#define RLHF_CPU_MACHINE_THREADS_H

struct rlhf__threads;

// Starts threads - 1 threads. If one of them cannot be started, ends the others. Returns 0 or an
// errno, and *out is NULL unless it returns 0. [main]
int rlhf__threads_create(int threads, struct rlhf__threads **out);

// Waits until the threads have ended. NULL allowed. [main]
void rlhf__threads_destroy(struct rlhf__threads *t);

// Calls work(arg, share) once for each share from 0 to shares - 1, and returns when all calls have
// returned. `shares` is at least 1 and at most the number of threads. `work` must not call this
// function. One call at a time, from any thread. [step]
void rlhf__threads_run(struct rlhf__threads *t, int shares, void (*work)(void *arg, int share),
                       void *arg);

#endif
