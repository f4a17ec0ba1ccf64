// calibration.c: see calibration.h.
#include "report/calibration.h"

#include <math.h>
#include <string.h>

#define FEWEST 32 // responses that a mean is taken seriously of

static int get(const struct rlhf__phase *p, size_t k, const char *what, double *out) {
    char name[192];
    snprintf(name, sizeof name, "rewards/%s/%s", p->config->reward[k].name, what);
    return rlhf__metrics_get(p->report->metrics, name, out);
}

void rlhf__calibration_note(const struct rlhf__phase *p) {
    if (p->count->phase > 0 || p->x.rows.n < FEWEST) return;
    for (size_t k = 0; k < p->cast->n_rewards; k++) {
        double mean, std;
        if (strcmp(p->cast->rewards[k]->plugin->desc.id, "org.rlhf-host.bt-rm") != 0 ||
            !get(p, k, "mean", &mean) || !get(p, k, "std", &std))
            continue;
        if (fabs(mean) < 1 && std > 1.0 / 3 && std < 3) continue;
        rlhf__logf(p->report->log, RLHF_LOG_WARN,
                   "reward %s begins at mean %.2f and standard deviation %.2f, where a reward "
                   "model is fitted to 0 and 1 (score.calibrate): it was fitted on other prompts "
                   "or another policy's responses; what is weighed against it (algo.kl_coef) "
                   "weighs as much less or more",
                   p->config->reward[k].name, mean, std);
    }
}
