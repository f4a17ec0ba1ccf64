// tensorboard_sample.c: writes the input of check_tensorboard.py to the directory argv[1]: a run of
// 4 phases, of which the last two are written twice because of a resume.
#include "report/distribution.h"
#include "report/metrics.h"
#include "report/samples.h"

#include <math.h>
#include <string.h>

static rlhf_status phases(const struct rlhf__folder *dir, int64_t keep, int64_t from, int64_t to,
                          double base, struct rlhf__error *err) {
    struct rlhf__metrics *m;
    struct rlhf__samples *s;
    RLHF_TRY(
        rlhf__metrics_open(dir, &(struct rlhf__log_config){.tensorboard = 1}, keep, NULL, &m, err));
    RLHF_TRY(rlhf__samples_open(dir, keep, NULL, &s, err));
    rlhf_status status = RLHF_OK;
    for (int64_t p = from; p <= to && status == RLHF_OK; p++) {
        const char *text = " great | film\n\xc3\xa9";
        struct rlhf__sample one = {.prompt = {"This was", 8},
                                   .response = {text, strlen(text)},
                                   .reward = 0.5,
                                   .ref_logp = -12.5,
                                   .logp = NAN};
        rlhf__metrics_set(m, "objective/scores", base + (double)p);
        rlhf__metrics_set(m, "loss/total", NAN);
        status = rlhf__metrics_flush(m, p, err);
        double x[40];
        struct rlhf__distribution d;
        for (int i = 0; i < 40; i++)
            x[i] = i;
        rlhf__distribution_of(x, 40, &d);
        if (status == RLHF_OK) status = rlhf__metrics_histogram(m, p, "spread/length", &d, err);
        if (status == RLHF_OK) status = rlhf__samples_write(s, p, &one, 1, m, "samples", err);
    }
    rlhf__metrics_close(m);
    rlhf__samples_close(s);
    return status;
}

int main(int argc, char **argv) {
    struct rlhf__error err = {0};
    if (argc != 2) return 2;
    struct rlhf__folder *dir = NULL;
    rlhf_status status = rlhf__folder_open(NULL, argv[1], &dir, &err);
    if (status == RLHF_OK) status = phases(dir, -1, 1, 4, 0, &err);
    if (status == RLHF_OK) status = phases(dir, 2, 3, 4, 100, &err);
    rlhf__folder_close(dir);
    if (status < 0) fprintf(stderr, "%s\n", err.text);
    return status < 0;
}
