// run_dir.c: see run_dir.h.
#include "train/run_dir.h"

#include "base/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

static int exists(const char *path) {
    struct stat s;
    return lstat(path, &s) == 0;
}

rlhf_status rlhf__run_dir_choose(const struct rlhf__run_request *req, char out[4096],
                                 struct rlhf__error *err) {
    const char *wanted = req->config->run.dir;
    if (wanted[0]) {
        if (strlen(wanted) >= 4000)
            return rlhf__fail(err, RLHF_E_INVALID, "run.dir is longer than 4,000 bytes");
        snprintf(out, 4096, "%s", wanted);
        if (!exists(out)) return RLHF_OK;
        return rlhf__fail(err, RLHF_E_INVALID,
                          "the run directory '%s' exists already; choose another run.dir, or go on "
                          "with that run by --resume '%s'",
                          out, out);
    }
    char date[32];
    time_t now = time(NULL);
    struct tm local;
    localtime_r(&now, &local);
    strftime(date, sizeof date, "%Y%m%d", &local);
    for (int n = 1; n < 100000; n++) {
        snprintf(out, 4096, "runs/%s-%s-%d", req->algo->stem, date, n);
        if (!exists(out)) return RLHF_OK;
    }
    return rlhf__fail(err, RLHF_E_INVALID, "runs/%s-%s-* is full; give run.dir", req->algo->stem,
                      date);
}

static rlhf_status write_json(const char *path, json_t *v, struct rlhf__error *err) {
    if (!v) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for '%s'", path);
    struct rlhf__buf text = RLHF__BUF_INIT;
    rlhf__json_write(&text, v, 2);
    rlhf__buf_putc(&text, '\n');
    json_decref(v);
    rlhf_status st = rlhf__buf_ok(&text, err);
    if (st == RLHF_OK) st = rlhf__file_write(path, text.data, text.len, err);
    rlhf__buf_free(&text);
    return st;
}

rlhf_status rlhf__run_dir_make(const struct rlhf__trainer *t, struct rlhf__error *err) {
    char path[4200];
    rlhf_status st = rlhf__make_dirs(t->dir, err);
    json_t *config = NULL;
    if (st == RLHF_OK) st = rlhf__config_to_json(t->config, &config, err);
    if (st != RLHF_OK) return st;
    snprintf(path, sizeof path, "%s/config.json", t->dir);
    return write_json(path, config, err);
}
