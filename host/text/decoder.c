// decoder.c: see decoder.h.
#include "text/decoder.h"

#include "text/tokenizer_part.h"

rlhf_status rlhf__decoder_read(const json_t *part, int bytes, int32_t *kind,
                               struct rlhf__error *err) {
    const char *type = bytes ? "ByteLevel" : "WordPiece";
    *kind = bytes ? RLHF__DECODER_BYTES : RLHF__DECODER_WORDPIECE;
    if (!part || json_is_null(part)) return RLHF_OK;
    const json_t *inner = json_object_get(part, "decoders");
    if (inner && json_array_size(inner) <= 1)
        return rlhf__decoder_read(json_array_get(inner, 0), bytes, kind, err);
    return rlhf__part_is(part, type) ? RLHF_OK : rlhf__part_refuse("decoder", part, type, err);
}
