// warden.h: the process that the host starts for a reward: it forks the worker, confined, and ends
// with everything that the worker started when the worker ends, when it is told to (SIGTERM) or
// when the host is gone. Its own wait status is the worker's.
//
// It obeys the host's orders (wire.h): between calls it stops the worker and everything that the
// worker started (SIGSTOP), and looks every CHECK seconds whether they are at rest. What is not,
// because something of it has SIGCONT sent to it, is ended the third time: SIGXCPU is then the
// worker's wait status.
//
// With a PID namespace there is one process more, the first of it: when that ends, the kernel ends
// all others in there. Without one the list of system calls keeps them all in one
// process group, which the kernel ends at once, however fast they fork; the warden adopts what is
// left beside that and ends it.
#ifndef RLHF_HOST_WORKER_WARDEN_H
#define RLHF_HOST_WORKER_WARDEN_H

// Run work(arg, spaces) in a worker; its result is the worker's exit status. network: 1 = the
// worker may use the network. host: the process that started this one. Never returns. [main]
_Noreturn void rlhf__warden(long host, int network, int (*work)(void *arg, unsigned spaces),
                            void *arg);

#endif
