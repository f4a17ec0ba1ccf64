// rows_out.c: see rows_out.h.
#include "rows_out.h"

void rlhf__row_out(struct rlhf__bytes *b, const rlhf_reward_in *in, uint32_t i, uint32_t index,
                   int ids) {
    rlhf__bytes_text(b, "{\"phase\":");
    rlhf__bytes_number(b, (int64_t)in->phase + 1); // phases count from 1, as in the metrics
    rlhf__bytes_text(b, ",\"index\":");
    rlhf__bytes_number(b, index);
    if (in->group) {
        rlhf__bytes_text(b, ",\"group\":");
        rlhf__bytes_number(b, in->group[i]);
    }
    rlhf__bytes_text(b, ",\"prompt\":");
    rlhf__bytes_string(b, in->prompt[i]);
    rlhf__bytes_text(b, ",\"response\":");
    rlhf__bytes_string(b, in->response[i]);
    rlhf__bytes_text(b, in->finished[i] ? ",\"finished\":true" : ",\"finished\":false");
    if (ids) {
        const int32_t *row = in->ids + in->offset[i];
        const int32_t len = in->offset[i + 1] - in->offset[i], prompt = in->prompt_len[i];
        rlhf__bytes_text(b, ",\"prompt_ids\":");
        rlhf__bytes_list(b, row, (size_t)prompt);
        rlhf__bytes_text(b, ",\"ids\":");
        rlhf__bytes_list(b, row + prompt, (size_t)(len - prompt));
    }
    rlhf__bytes_text(b, ",\"row\":");
    rlhf__bytes_json(b, in->meta ? in->meta[i] : (rlhf_str){NULL, 0});
    rlhf__bytes_text(b, "}\n");
}
