// running.c: see running.h. The variables are static, because signal handlers can reach nothing
// else.
#include "base/running.h"

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static _Thread_local volatile struct rlhf__running now;
static volatile struct rlhf__running *volatile first; // the record of the watched thread
static volatile pid_t home;

static struct rlhf__running get(const volatile struct rlhf__running *r) {
    return (struct rlhf__running){r->kind, r->name, r->function, r->pid, {0, 0}};
}

// A signal handler may run between these stores. After each store, all strings in the record are
// valid.
static void set(const struct rlhf__running *r) {
    now.kind = r->kind;
    now.name = r->name;
    now.function = r->function;
    now.pid = r->pid;
    atomic_signal_fence(memory_order_seq_cst);
}

static void append(char *out, size_t cap, const char *text) {
    size_t at = strlen(out);
    for (; text && *text && at + 1 < cap; text++)
        out[at++] = *text;
    out[at] = '\0';
}

// Appends a name, such as that of a file, without the characters that would break a line or a JSON
// string.
static void append_plain(char *out, size_t cap, const char *name) {
    size_t at = strlen(out);
    for (; name && *name && at + 1 < cap; name++)
        if (*name != '"' && *name != '\\' && (unsigned char)*name >= ' ' && *name != 127)
            out[at++] = *name;
    out[at] = '\0';
}

static void put_names(char *out, size_t cap, const struct rlhf__running *r) {
    append(out, cap, r->kind);
    append(out, cap, " ");
    append_plain(out, cap, r->name);
    append(out, cap, ", ");
    append(out, cap, r->function);
}

struct rlhf__running rlhf__running_begin(const char *kind, const char *name, const char *function) {
    struct rlhf__running before = get(&now), r = {kind, name, function, getpid(), {0, 0}};
    // The host itself always computes in the standard environment.
    before.floats = before.function ? rlhf__float_env_get() : RLHF__FLOAT_ENV_STANDARD;
    rlhf__float_env_set(RLHF__FLOAT_ENV_STANDARD);
    set(&r);
    return before;
}

static void end_child(void) {
    char text[512] = "rlhf-host: error: ";
    rlhf__running_describe(text + strlen(text), sizeof text - strlen(text));
    append(text, sizeof text, ": a process that it forked returned to the host; it is ended\n");
    const ssize_t put = write(STDERR_FILENO, text, strlen(text));
    (void)put;
    _exit(1); // it runs no exit handlers and flushes no buffers of the parent
}

void rlhf__running_end(const struct rlhf__running *before) {
    if (getpid() != now.pid) end_child();
    rlhf__float_env_set(before->floats);
    set(before);
}

void rlhf__running_watch(void) {
    home = getpid();
    first = &now;
}

int rlhf__running_is_main(void) { return first == &now && home == getpid(); }

pid_t rlhf__running_home(void) { return home; }

// Sets *r to the record of the calling thread or, if it has none, of the watched thread. Sets
// *other to 1 if the record is that of the watched thread. Returns 0 if neither has one.
static int find(struct rlhf__running *r, int *other) {
    *r = get(&now);
    *other = 0;
    if (r->function) return 1;
    if (!first || first == &now) return 0;
    *r = get(first);
    *other = 1;
    return r->function != NULL;
}

int rlhf__running_describe(char *out, size_t cap) {
    struct rlhf__running r;
    int other;
    out[0] = '\0';
    if (!find(&r, &other)) return 0;
    if (other) append(out, cap, "another thread during ");
    put_names(out, cap, &r);
    return 1;
}

int rlhf__running_task(char *out, size_t cap) {
    static const char *const tasks[][2] = {{"gen_open()", "sampling"},
                                           {"gen_step()", "sampling"},
                                           {"forward()", "a forward pass"},
                                           {"backward()", "a backward pass"}};
    struct rlhf__running r;
    const char *task = NULL;
    int other;
    out[0] = '\0';
    if (!find(&r, &other)) return 0;
    for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++)
        if (strcmp(r.kind, "model") == 0 && strcmp(r.function, tasks[i][0]) == 0)
            task = tasks[i][1];
    append(out, cap, task);
    append(out, cap, task ? " (" : NULL);
    append(out, cap, r.kind);
    append(out, cap, " ");
    append_plain(out, cap, r.name);
    append(out, cap, task ? ")" : NULL);
    return 1;
}
