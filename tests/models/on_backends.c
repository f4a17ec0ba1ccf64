// on_backends.c: see on_backends.h.
#include "on_backends.h"

struct backend backend;

static const struct kind {
    const char *name, *what;
    uint32_t bit, guard;
} kinds[] = {{"reference", "reference", ON_REFERENCE, 0},
             {"reference", "reference, guard mode", ON_GUARD, 1},
             {"cpu", "cpu", ON_CPU, 0}};

static const struct kind *kind;
static uint32_t group_threads;

const char *backend_name(void) { return kind->name; }

struct backend backend_again(uint32_t threads) {
    return backend_open(kind->name, threads, kind->guard);
}

static int setup(void **state) {
    (void)state;
    backend = backend_again(group_threads);
    return backend.compute ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    backend_close(&backend);
    return 0;
}

int on_backends(const char *title, uint32_t which, uint32_t threads, const struct CMUnitTest *tests,
                size_t n) {
    int failed = 0;
    group_threads = threads;
    for (kind = kinds; kind < kinds + sizeof kinds / sizeof *kinds; kind++) {
        char name[96];
        if (!(which & kind->bit)) continue;
        snprintf(name, sizeof name, "%s: %s", title, kind->what);
        failed += _cmocka_run_group_tests(name, tests, n, setup, teardown);
    }
    return failed != 0;
}
