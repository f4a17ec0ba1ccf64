// fuzz_http_reply.c: answers of a reward service, of any bytes. The first byte chooses the form and
// the number of rows. Every row has a reward or has failed, a refusal has a reason, and reading the
// same answer twice gives the same result.
#include "fuzz.h"

#include "http/reply.h"

#include <rlhf/reward.h>

enum { ROWS = 8 };

static void *take(const rlhf_host *host, uint64_t n) {
    (void)host;
    return calloc(1, (size_t)n);
}

static void give(const rlhf_host *host, void *p) {
    (void)host;
    free(p);
}

static const rlhf_host host = {.size = sizeof host, .alloc = take, .free = give};

struct read {
    float seq[ROWS + 1]; // the last element is a guard
    uint8_t verdict[ROWS + 1], failed[ROWS + 1];
    struct rlhf__tally *tally;
    char why[RLHF__WHY];
    rlhf_status status;
};

static void read_once(struct read *r, const uint8_t *data, size_t n) {
    const struct rlhf__reply reply = {.form = data[0] & 1,
                                      .n = 1 + (data[0] >> 1) % ROWS,
                                      .seq = r->seq,
                                      .verdict = r->verdict,
                                      .failed = r->failed,
                                      .tally = &r->tally};
    memset(r, 0x55, sizeof *r);
    r->tally = NULL;
    memset(r->verdict, 0, ROWS); // as the host does
    r->status = rlhf__reply_read(&reply, &host, (const char *)data + 1, n - 1, r->why);
    FUZZ_CHECK(r->failed[reply.n] == 0x55); // this byte belongs to no row
    FUZZ_CHECK(r->status == RLHF_OK || (r->status == RLHF_E_INVALID && *r->why));
    FUZZ_CHECK(strlen(r->why) < RLHF__WHY);
    for (const char *c = r->why; *c; c++)
        FUZZ_CHECK((unsigned char)*c >= ' ' && *c != 0x7f);
    int any = 0;
    for (uint32_t i = 0; r->status == RLHF_OK && i < reply.n; i++) {
        FUZZ_CHECK(r->failed[i] <= 1 && r->verdict[i] <= RLHF_VERDICT_WRONG);
        any |= r->failed[i];
    }
    FUZZ_CHECK(r->status != RLHF_OK || any == (*r->why != 0));
    for (uint32_t i = 0; r->tally && i < r->tally->n; i++)
        FUZZ_CHECK(*r->tally->of[i].name && r->tally->of[i].count > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    static struct read first, again;
    if (n < 1) return 0;
    read_once(&first, data, n);
    read_once(&again, data, n);
    FUZZ_CHECK(first.status == again.status && strcmp(first.why, again.why) == 0);
    FUZZ_CHECK(!first.tally == !again.tally);
    FUZZ_CHECK(!first.tally || first.tally->n == again.tally->n);
    FUZZ_CHECK(first.status < 0 || memcmp(first.seq, again.seq, sizeof first.seq) == 0);
    free(first.tally);
    free(again.tally);
    return 0;
}
