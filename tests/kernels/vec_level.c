// vec_level.c: functions of machine/vec.h as loops over arrays, compiled once per instruction-set
// level for test_vec.c.
#include "vec_level.h"
#include "machine/vec.h"

#define PASTE2(name, level) name##_##level
#define PASTE(name, level)  PASTE2(name, level)

void PASTE(vec_exp, RLHF_HOT_LEVEL)(float *out, const float *x, size_t n) {
    for (size_t i = 0; i < n; i += VF_LANES) {
        const size_t m = n - i < VF_LANES ? n - i : VF_LANES;
        vf_store_n(out + i, vf_exp(vf_load_n(x + i, m)), m);
    }
}

void PASTE(vec_to_bf16, RLHF_HOT_LEVEL)(uint16_t *out, const float *x, size_t n) {
    for (size_t i = 0; i < n; i += VF_LANES) {
        const size_t m = n - i < VF_LANES ? n - i : VF_LANES;
        vf_store_bf16_n(out + i, vf_load_n(x + i, m), m);
    }
}
