// process.c: see process.h.
#include "wire/process.h"

#include "base/file.h"
#include "wire/fence.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE  5.0 // seconds that a warden gets to end its processes
#define MOST_TAKE ((size_t)4 << 20)

// ---- the control group ----

// Memory for the code of the worker and the warden. It is added only to the limit of the control
// group, because the limit of a single process does not count code.
enum { OWN_MIB = 16 };

static void make_group(struct rlhf__worker *w) {
#ifndef RLHF_SANITIZED // the sanitizers' shadow memory needs several times as much
    if (w->memory_mib) rlhf__cgroup_make("", (w->memory_mib + OWN_MIB) << 20, &w->group);
#else
    (void)w;
#endif
}

// Call this function when all processes in the group have terminated.
static void close_group(struct rlhf__worker *w) {
    const enum rlhf__cgroup_end how = rlhf__cgroup_close(&w->group);
    if (w->failed.code || how == RLHF__CGROUP_FINE) return;
    if (how == RLHF__CGROUP_OWN)
        rlhf__fail(&w->failed, RLHF_E_INTERNAL,
                   "the kernel killed its worker, which needs more memory with all that it started "
                   "(rewards.memory_mib allows its worker %llu MiB)",
                   (unsigned long long)w->memory_mib);
    else
        rlhf__fail(&w->failed, RLHF_E_INTERNAL,
                   "the kernel killed its worker, since the machine or the host's control group "
                   "had no memory left");
}

// ---- starting ----

#define FILE_LIMIT                                                                                 \
    "the limit on the size of files (ulimit -f) holds for the memory that is shared with a "       \
    "worker, too"

static int memory_file(const char *name, uint64_t bytes) {
    const int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) return -1;
    // Seal the size, because reading the file would crash the host if a worker had truncated it.
    if (ftruncate(fd, (off_t)bytes) == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) == 0)
        return fd;
    close(fd);
    return -1;
}

static int spawn(struct rlhf__worker *w, const char *program, int network, const char *writes,
                 int *given) {
    char host[32], name[] = "rlhf-host", command[] = "worker", net[] = "network", no[] = "closed";
    char dir[RLHF__PATH_CAP], own[RLHF__PATH_CAP];
    snprintf(host, sizeof host, "%ld", (long)getpid());
    rlhf__path_put(dir, "%s", w->group.dir ? w->group.dir : "");
    rlhf__path_put(own, "%s", writes ? writes : "");
    char *argv[] = {name, command, host, network ? net : no, dir, own, NULL};
    return rlhf__ward_start(&w->ward, program, argv, NULL, given);
}

static void not_to_wait(int fd) { fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); }

static int dup_of(int fd) { return fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0); }

static int open_all(struct rlhf__worker *w, int given[RLHF__WARD_FILES]) {
    int ask[2] = {-1, -1}, call[2] = {-1, -1}, noise[2] = {-1, -1};
    const int bad = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ask) != 0 ||
                    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, call) != 0 ||
                    pipe2(noise, O_CLOEXEC) != 0;
    w->ask.fd = ask[0];
    w->call.fd = call[0];
    w->noise = noise[0];
    w->input_bytes = w->output_bytes = 65536;
    w->input_fd = memory_file("rlhf-input", w->input_bytes);
    w->output_fd = memory_file("rlhf-output", w->output_bytes);
    given[0] = rlhf__ward_file(open("/dev/null", O_RDONLY | O_CLOEXEC));
    given[1] = rlhf__ward_file(noise[1]);
    given[2] = rlhf__ward_file(dup_of(given[1]));
    given[RLHF__WORKER_ASK] = rlhf__ward_file(ask[1]);
    given[RLHF__WORKER_CALL] = rlhf__ward_file(call[1]);
    given[RLHF__WORKER_INPUT] = rlhf__ward_file(dup_of(w->input_fd));
    given[RLHF__WORKER_OUTPUT] = rlhf__ward_file(dup_of(w->output_fd));
    for (int i = 0; i <= RLHF__WORKER_OUTPUT; i++)
        if (given[i] < 0) return -1;
    if (bad) return -1;
    not_to_wait(w->ask.fd);
    not_to_wait(w->call.fd);
    not_to_wait(w->noise);
    return 0;
}

static int map_file(int fd, uint64_t bytes, char **out) {
    void *p = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    *out = p == MAP_FAILED ? NULL : p;
    return *out ? 0 : -1;
}

static void close_fd(int *fd) {
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

static void finish(struct rlhf__worker *w) {
    rlhf__cgroup_close(&w->group);
    close_fd(&w->ask.fd);
    close_fd(&w->call.fd);
    close_fd(&w->noise);
    close_fd(&w->input_fd);
    close_fd(&w->output_fd);
    if (w->input) munmap(w->input, (size_t)w->input_bytes);
    if (w->output) munmap(w->output, (size_t)w->output_bytes);
    rlhf__buf_finish(&w->ask.in);
    rlhf__buf_finish(&w->ask.out);
    rlhf__buf_finish(&w->call.in);
    rlhf__buf_finish(&w->call.out);
    rlhf__buf_finish(&w->printed);
    free(w);
}

rlhf_status rlhf__worker_start(const char *program, int network, const char *writes,
                               uint64_t memory_mib, struct rlhf__worker **out,
                               struct rlhf__error *err) {
    int given[RLHF__WARD_FILES];
    *out = NULL;
    struct rlhf__worker *w = calloc(1, sizeof *w);
    if (!w) return RLHF__NOMEM(err, "out of memory for a worker");
    if (!*program) {
        free(w);
        return rlhf__fail(err, RLHF_E_IO, "this program cannot start workers");
    }
    for (int i = 0; i < RLHF__WARD_FILES; i++)
        given[i] = -1;
    errno = 0;
    int bad = open_all(w, given) != 0 || map_file(w->input_fd, w->input_bytes, &w->input) != 0 ||
              map_file(w->output_fd, w->output_bytes, &w->output) != 0;
    int why = errno;
    w->memory_mib = memory_mib;
    if (!bad) make_group(w);
    if (!bad) why = spawn(w, program, network, writes, given);
    for (int i = 0; i < RLHF__WARD_FILES; i++)
        close_fd(&given[i]);
    if (bad || why) {
        finish(w);
        return rlhf__fail(err, RLHF_E_IO, "its worker cannot be started: %s",
                          why == EFBIG ? FILE_LIMIT : strerror(why));
    }
    *out = w;
    return RLHF_OK;
}

// ---- the end ----

static int end_process(struct rlhf__worker *w, double patience, int *status) {
    if (!w->ward.pid) return 0;
    const int own = rlhf__ward_end(&w->ward, patience, status);
    close_group(w);
    return own;
}

void rlhf__worker_end(struct rlhf__worker *w) {
    int status;
    if (!w) return;
    end_process(w, 0, &status);
    finish(w);
}

void rlhf__worker_fail(struct rlhf__worker *w, rlhf_status code, const char *why) {
    int status;
    end_process(w, 0, &status);
    if (!w->failed.code) rlhf__fail(&w->failed, code, "%s", why);
}

// Write what the worker recorded about a write outside its arrays.
static void say_fence(const struct rlhf__worker *w, char *out, size_t cap) {
    const struct rlhf__batch_note *note = rlhf__worker_note(w);
    const unsigned fence = atomic_load(&note->fence);
    const char *name = rlhf__fence_name(fence);
    *out = '\0';
    if (fence == RLHF__FENCE_INPUT)
        snprintf(out, cap, "wrote to %s, ", name);
    else if (*name)
        snprintf(out, cap, "wrote %s %s, ",
                 atomic_load(&note->before) ? "before the start of" : "past the end of", name);
}

void rlhf__worker_gone(struct rlhf__worker *w) {
    char fence[96];
    int status = 0;
    if (!w->ward.pid) return;
    const int own = end_process(w, PATIENCE, &status);
    say_fence(w, fence, sizeof fence);
    if (w->failed.code) return;
    // A dying worker may take longer than PATIENCE to exit, but it records the signal before that.
    const unsigned noted = atomic_load(&rlhf__worker_note(w)->signal);
    const char *memory = atomic_load(&rlhf__worker_note(w)->no_memory)
                             ? ", with all memory used that rewards.memory_mib allows,"
                             : "";
    const int deadly = own && WIFSIGNALED(status) ? WTERMSIG(status)
                       : !own && noted < NSIG     ? (int)noted
                                                  : 0;
    if (deadly)
        rlhf__fail(&w->failed, RLHF_E_INTERNAL, "%sits worker was ended by signal %d (%s)%s", fence,
                   deadly, strsignal(deadly), memory);
    else if (own && WIFEXITED(status))
        rlhf__fail(&w->failed, RLHF_E_INTERNAL, "its worker ended with status %d",
                   WEXITSTATUS(status));
    else
        rlhf__fail(&w->failed, RLHF_E_INTERNAL, "its worker closed its sockets and was ended");
}

// ---- memory ----

static int grow(int fd, uint64_t want, char **map, uint64_t *bytes) {
    uint64_t to = *bytes;
    if (want <= to) return 0;
    while (to < want)
        to *= 2;
    char *fresh;
    if (ftruncate(fd, (off_t)to) != 0 || map_file(fd, to, &fresh) != 0) return -1;
    munmap(*map, (size_t)*bytes);
    *map = fresh;
    *bytes = to;
    return 0;
}

static rlhf_status no_room(uint64_t bytes, int why, struct rlhf__error *err) {
    if (why == EFBIG)
        return rlhf__fail(err, RLHF_E_IO, "a batch of %llu bytes cannot be shared: " FILE_LIMIT,
                          (unsigned long long)bytes);
    return RLHF__NOMEM(err, "out of memory for a batch of %llu bytes", (unsigned long long)bytes);
}

rlhf_status rlhf__worker_room(struct rlhf__worker *w, uint64_t input, uint64_t output,
                              struct rlhf__error *err) {
    const uint64_t most = (uint64_t)1 << 40;
    if (input > most || output > most ||
        grow(w->input_fd, input, &w->input, &w->input_bytes) != 0 ||
        grow(w->output_fd, output, &w->output, &w->output_bytes) != 0)
        return no_room(input > output ? input : output, errno, err);
    return RLHF_OK;
}

struct rlhf__batch_note *rlhf__worker_note(const struct rlhf__worker *w) {
    return (struct rlhf__batch_note *)(void *)w->output;
}

// ---- channels ----

void rlhf__channel_flush(struct rlhf__channel *c) {
    while (!c->ended && c->sent < c->out.len) {
        const ssize_t n =
            send(c->fd, c->out.data + c->sent, c->out.len - c->sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
        if (n <= 0) c->ended = 1;
        if (n > 0) c->sent += (size_t)n;
    }
    if (c->out.bad) c->ended = 1;
    rlhf__buf_clear(&c->out);
    c->sent = 0;
}

// Drop consumed bytes from the buffer, and free a large buffer if it is empty.
static void compact(struct rlhf__channel *c) {
    if (!c->taken) return;
    c->in.len -= c->taken;
    memmove(c->in.data, c->in.data + c->taken, c->in.len);
    c->taken = 0;
    if (c->in.len == 0 && c->in.cap > MOST_TAKE) rlhf__buf_finish(&c->in);
}

void rlhf__channel_fill(struct rlhf__channel *c) {
    compact(c);
    for (size_t taken = 0; !c->ended && taken < MOST_TAKE;) {
        const size_t step = 65536;
        char *to = rlhf__buf_grow(&c->in, step);
        if (!to) {
            c->ended = 1;
            return;
        }
        const ssize_t n = recv(c->fd, to, step, MSG_DONTWAIT);
        const int why = errno;
        c->in.len -= step - (n > 0 ? (size_t)n : 0);
        if (n > 0) taken += (size_t)n;
        if (n == 0) c->ended = 1;
        if (n >= 0 || why == EINTR) continue;
        if (why != EAGAIN && why != EWOULDBLOCK) c->ended = 1;
        return;
    }
}

int rlhf__channel_front(const struct rlhf__channel *c, struct rlhf__wire *out, size_t *bytes) {
    const uint64_t most = c->most ? c->most : RLHF__WIRE_MAX;
    return rlhf__wire_front(&c->in, c->taken, most, out, bytes);
}

void rlhf__channel_pop(struct rlhf__channel *c, size_t bytes) { c->taken += bytes; }
