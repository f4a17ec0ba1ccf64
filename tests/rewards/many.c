// many.c: see many.h.
#include "rewards/many.h"

#include "worker/programs.h"

void many_fill(struct many *m, uint32_t n, rlhf_str response) {
    memset(m, 0, sizeof *m);
    assert_true(n <= MANY);
    for (uint32_t i = 0; i < n; i++) {
        m->prompt[i] = (rlhf_str){"It was ", 7};
        m->response[i] = response;
        m->offset[i + 1] = 4 * (int32_t)(i + 1);
        m->prompt_len[i] = 2;
        m->group[i] = (int32_t)i / 2;
        m->finished[i] = 1;
        for (int k = 0; k < 4; k++)
            m->ids[4 * i + (uint32_t)k] = 7 + k;
    }
}

rlhf_status many_score(struct reward *r, struct many *m, uint32_t n) {
    const rlhf_reward_in in = {.size = sizeof in,
                               .n = n,
                               .phase = m->phase,
                               .prompt = m->prompt,
                               .response = m->response,
                               .meta = m->meta,
                               .ids = m->ids,
                               .offset = m->offset,
                               .prompt_len = m->prompt_len,
                               .finished = m->finished,
                               .group = m->group};
    const rlhf_reward_out out = {
        .size = sizeof out, .seq = m->seq, .verdict = m->verdict, .failed = m->failed};
    memset(m->verdict, 0, sizeof m->verdict);
    memset(m->failed, 0, sizeof m->failed);
    for (uint32_t i = 0; i < n; i++)
        m->seq[i] = -99;
    r->host.fail_text[0] = 0;
    return r->ops->score(r->self, &in, &out);
}

uint32_t many_failed(const struct many *m, uint32_t n) {
    uint32_t failed = 0;
    for (uint32_t i = 0; i < n; i++)
        failed += m->failed[i];
    return failed;
}

const void *many_programs(void) {
    static struct rlhf__programs programs;
    static char host[4096];
    const char *build = getenv("RLHF_BUILD_DIR");
    snprintf(host, sizeof host, "%s/bin/rlhf-host", build ? build : ".");
    rlhf__programs_init(&programs, host, NULL);
    return &programs.table;
}
