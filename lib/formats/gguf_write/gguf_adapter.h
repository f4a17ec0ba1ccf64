// gguf_adapter.h: writes an adapter as llama.cpp's own LoRA file, which `llama-cli --lora` adds to
// the base while it runs. Nothing is merged, so the base may be quantised.
#ifndef RLHF_FORMATS_GGUF_WRITE_GGUF_ADAPTER_H
#define RLHF_FORMATS_GGUF_WRITE_GGUF_ADAPTER_H

#include "base/folder.h"
#include "weights/peft.h"

#include <jansson.h>
#include <signal.h>

struct rlhf__gguf_adapter {
    const char *dir;      // of the adapter, for messages
    const char *name;     // general.name
    const json_t *config; // of the base
    const struct rlhf__peft *peft;
    const struct rlhf__weights *weights;    // of the adapter, under PEFT's names
    int32_t dtype;                          // F32, F16 or BF16
    const volatile sig_atomic_t *cancelled; // NULL = never
};

// Write the file `name` in the folder `in`. If `in` is NULL, `name` is a path. The matrices of a
// weight NAME are NAME.lora_a [rank, inputs] and NAME.lora_b [outputs, rank], whose rows have the
// order of the rows of NAME in a GGUF file. llama.cpp multiplies by alpha / rank, so alpha is
// stored as scale times rank (an adapter with use_rslora thus keeps its scale). If `name` is NULL,
// only checks. Errors: RLHF_E_INVALID (a base or a layer that llama.cpp's architectures lack; a
// score head), RLHF_E_IO, RLHF_E_CANCELLED, RLHF_E_NOMEM. [main]
rlhf_status rlhf__gguf_adapter_write(const struct rlhf__gguf_adapter *,
                                     const struct rlhf__folder *in, const char *name,
                                     struct rlhf__error *err);

#endif
