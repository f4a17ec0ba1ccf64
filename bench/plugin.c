// plugin.c: see plugin.h.
#include "plugin.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void bench_plugin_open(struct bench_plugin *p, const struct bench *b, const char *folder,
                       const char *file, const char *const (*set)[2]) {
    char path[4300], program[4200];
    *p = (struct bench_plugin){.self = NULL};
    snprintf(path, sizeof path, "%s/%s/%s", b->lib_dir, folder, file);
    p->plugin = rlhf_test_open(path, 0);
    if (!p->plugin) bench_die("%s cannot be opened", path);
    p->config = calloc(1, p->plugin->config_size);
    rlhf_test_init(&p->host, 1);
    snprintf(program, sizeof program, "%s/../../../bin/rlhf-host", b->lib_dir);
    rlhf__programs_init(&p->programs, program, NULL);
    rlhf_test_offer(&p->host, RLHF_SVC_PROGRAM, &p->programs.table);
    rlhf_test_config(p->plugin, p->config);
    for (; (*set)[0]; set++)
        if (!rlhf_test_set(p->plugin, p->config, (*set)[0], (*set)[1]))
            bench_die("%s: no %s", file, **set);
    if (p->plugin->create(&p->host.table, p->config, &p->self) < 0)
        bench_die("%s: %s", file, p->host.fail_text);
}

void bench_plugin_close(struct bench_plugin *p) {
    p->plugin->destroy(p->self);
    free(p->config);
}

double bench_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void bench_python_file(char *path, const char *text) {
    const int fd = mkstemps(path, 3);
    const size_t n = strlen(text);
    if (fd < 0 || write(fd, text, n) != (ssize_t)n) bench_die("%s cannot be written", path);
    close(fd);
}
