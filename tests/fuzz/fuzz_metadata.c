// fuzz_metadata.c: any bytes as a plugin file that is read but not opened. An accepted file has
// descriptors that the loader would accept, and terminated texts.
#include "fuzz.h"

#include "plugin/metadata.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    struct rlhf__metadata m;
    struct rlhf__error err = {0};
    const rlhf_status st = rlhf__metadata_of("fuzz.so", data, n, &m, &err);
    if (st < 0) {
        FUZZ_CHECK(strstr(err.text, "fuzz.so"));
        rlhf__metadata_finish(&m);
        return 0;
    }
    FUZZ_CHECK((m.found == RLHF__METADATA_READ) == (m.n > 0 || m.kernels.size > 0));
    for (size_t i = 0; i < m.n; i++) {
        const struct rlhf__plugin *p = &m.plugin[i];
        size_t length = strlen(p->desc.id) + strlen(p->desc.version) + strlen(p->desc.summary);
        FUZZ_CHECK(length > 0 && p->desc.kind >= 1 && p->desc.kind <= 3);
        for (uint32_t k = 0; k < p->table.n; k++) {
            rlhf_opt o;
            rlhf__opt_at(&p->table, k, &o);
            FUZZ_CHECK(strlen(o.key) > 0 && o.offset < p->desc.config_size);
            for (size_t c = 0; o.type == RLHF_T_ENUM && o.choices[c]; c++)
                length += strlen(o.choices[c]);
        }
    }
    rlhf__metadata_finish(&m);
    return 0;
}
