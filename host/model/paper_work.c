// paper_work.c: workspaces of a backend on paper (paper_inner.h): each grows to the largest size
// asked for and stays.
#include "model/paper_inner.h"

void rlhf__paper_work(struct rlhf__paper *p, enum rlhf__paper_ws which, uint64_t bytes) {
    if (bytes <= p->work[which] || p->keeps_none) return;
    rlhf__ledger_grow(&p->ledger, rlhf__uses_owner(&p->ledger.uses, p->real->name),
                      RLHF__USE_WORKSPACE, bytes - p->work[which]);
    p->work[which] = bytes;
}

void rlhf__paper_on_host(struct rlhf__paper *p, enum rlhf__paper_ws which, uint64_t bytes) {
    if (p->real->device == RLHF_DEVICE_CPU)
        rlhf__paper_work(p, which, rlhf__paper_times(bytes, p->real->threads));
}
