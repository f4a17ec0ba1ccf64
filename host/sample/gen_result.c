// gen_result.c: see gen_result.h.
#include "sample/gen_result.h"

#include <stdlib.h>
#include <string.h>

void rlhf__gen_result_finish(struct rlhf__gen_result *r) {
    free(r->ids);
    free(r->logp);
    free(r->len);
    free(r->stopped);
    free(r->support);
    free(r->turn);
    memset(r, 0, sizeof *r);
}

// The operating system allocates a page of the supports only when the page is first written, so
// short responses use few pages.
rlhf_status rlhf__gen_result_init(struct rlhf__gen_result *r, uint32_t n, int32_t stride, int turns,
                                  size_t words, struct rlhf__error *err) {
    const size_t cells = (size_t)n * (size_t)stride;
    memset(r, 0, sizeof *r);
    r->stride = stride;
    r->ids = calloc(cells ? cells : 1, sizeof *r->ids);
    r->logp = calloc(cells ? cells : 1, sizeof *r->logp);
    r->len = calloc(n ? n : 1, sizeof *r->len);
    r->stopped = calloc(n ? n : 1, 1);
    if (words) r->support = calloc(cells ? cells : 1, words * sizeof *r->support);
    if (turns) r->turn = calloc(cells ? cells : 1, sizeof *r->turn);
    if (r->ids && r->logp && r->len && r->stopped && (r->support || !words) && (r->turn || !turns))
        return RLHF_OK;
    rlhf__gen_result_finish(r);
    return RLHF__NOMEM(err, "out of memory for %u responses of %d tokens", n, stride);
}
