// resume_trust.c: rlhf__resume_trust of resume.h: which code may a run's config.json name?
#include "config/resume.h"

#include "base/file.h"
#include "plugin/search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Kernels that come with the program lie in one directory.
static int kernels_installed(const struct rlhf__dirs *dirs, const char *path) {
    char real[RLHF__PATH_CAP], home[RLHF__PATH_CAP], own[RLHF__PATH_CAP];
    const int n = snprintf(own, sizeof own, "%s/kernels", dirs->lib);
    if (n < 0 || (size_t)n >= sizeof own || !rlhf__path_real(own, home)) return 0;
    char *slash = rlhf__path_real(path, real) ? strrchr(real, '/') : NULL;
    if (slash) *slash = '\0';
    return slash && strcmp(real, home) == 0;
}

static void add(struct rlhf__buf *list, const char *setting, const char *path) {
    rlhf__buf_printf(list, "%s%s (%s)", list->len ? ", " : "", setting, path);
}

static void look_at(const struct rlhf__config_request *req, const struct rlhf__plugin_config *p,
                    const char *setting, struct rlhf__buf *list) {
    char file[1024];
    if (!p->plugin || p->from == RLHF__NAME_TYPED) return;
    if (!rlhf__plugin_is_path(p->plugin, p->from, file)) return;
    if (!rlhf__plugin_is_installed(req->dirs, file)) add(list, setting, p->plugin);
}

static int is_set(const struct rlhf__config_request *req, const char *assignment) {
    for (size_t i = 0; i < req->n_set; i++)
        if (strncmp(req->set[i], assignment, strlen(assignment)) == 0) return 1;
    return 0;
}

rlhf_status rlhf__resume_trust(const struct rlhf__config_request *req, const struct rlhf__config *c,
                               struct rlhf__error *err) {
    struct rlhf__buf list = RLHF__BUF_INIT;
    if (req->trust_run) return RLHF_OK;
    look_at(req, &c->algo, "algo.plugin", &list);
    for (size_t i = 0; i < c->n_reward; i++) {
        char setting[40];
        snprintf(setting, sizeof setting, "reward.%zu.plugin", i);
        look_at(req, &c->reward[i], setting, &list);
    }
    look_at(req, &c->judge, "judge.plugin", &list);
    if (strchr(c->compute.backend, '/') && !is_set(req, "compute.backend=") &&
        !kernels_installed(req->dirs, c->compute.backend))
        add(&list, "compute.backend", c->compute.backend);
    rlhf_status st = rlhf__buf_ok(&list, err);
    if (st == RLHF_OK && list.len)
        st = rlhf__fail(err, RLHF_E_INVALID,
                        "--resume: %s/config.json names code that lies elsewhere than the "
                        "installed plugins and RLHF_PLUGIN_PATH: %s; it is opened when you name it "
                        "again (--algo, --reward, --judge, --set compute.backend=) or give "
                        "--trust-run",
                        req->resume, rlhf__buf_text(&list));
    rlhf__buf_free(&list);
    return st;
}
