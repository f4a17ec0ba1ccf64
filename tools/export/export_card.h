// export_card.h: README.md of an exported directory, a model card as the hub reads it: what the
// model is, how it was trained, with which settings and figures.
//
// Nothing in it tells where it was made: of a path the last part stays, and neither hosts nor
// hardware nor notes are named.
#ifndef RLHF_HOST_EXPORT_CARD_H
#define RLHF_HOST_EXPORT_CARD_H

#include "base/folder.h"
#include "export/export_source.h"

struct rlhf__export_card {
    const struct rlhf__export_source *source;
    const char *title;      // name of the directory
    const char *base_model; // --base-model, NULL = what can be told from paths and config
    const char *dtype;      // "f32", ...; NULL = mixed
    int64_t n_parameters;
    int32_t adapter, reserved; // 1: it is an adapter alone, for PEFT
};

// Write README.md. A model of no run that has one keeps it. Errors: RLHF_E_IO, RLHF_E_NOMEM. [main]
rlhf_status rlhf__export_card_write(const struct rlhf__export_card *, const struct rlhf__folder *to,
                                    struct rlhf__error *err);

// 1: the source is of no run and has a README.md, which stays its card. [main]
int rlhf__export_card_kept(const struct rlhf__export_source *);

#endif
