// lines_asked.c: see lines_asked.h.
#include "lines_asked.h"

#include <stdio.h>

const char *rlhf__asked_name(enum rlhf__asked what) {
    static const char *const names[] = {"reset", "step", "finish"};
    return names[what];
}

static void unsigned_number(struct rlhf__bytes *b, uint64_t n) {
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)n);
    rlhf__bytes_text(b, text);
}

static void begin(struct rlhf__bytes *b, const char *what, uint64_t as) {
    rlhf__bytes_text(b, "{\"");
    rlhf__bytes_text(b, what);
    rlhf__bytes_text(b, "\":");
    unsigned_number(b, as);
}

static void reset(struct rlhf__bytes *b, const rlhf_episode_in *in, uint32_t i) {
    rlhf__bytes_text(b, ",\"seed\":");
    unsigned_number(b, in->seed[i] >> 11); // 53 bits: every JSON reader has them exactly
    rlhf__bytes_text(b, ",\"phase\":");
    rlhf__bytes_number(b, in->phase);
    rlhf__bytes_text(b, ",\"row\":");
    rlhf__bytes_json(b, in->meta ? in->meta[i] : (rlhf_str){NULL, 0});
    rlhf__bytes_text(b, ",\"prompt\":");
    rlhf__bytes_string(b, in->text[i]);
}

static void step(struct rlhf__bytes *b, const rlhf_episode_in *in, uint32_t i) {
    rlhf__bytes_text(b, ",\"turn\":");
    rlhf__bytes_number(b, in->turn[i]);
    rlhf__bytes_text(b, ",\"text\":");
    rlhf__bytes_string(b, in->text[i]);
    rlhf__bytes_text(b, ",\"calls\":[");
    for (int32_t k = in->call_offset[i]; k < in->call_offset[i + 1]; k++) {
        rlhf__bytes_text(b, k > in->call_offset[i] ? ",{\"name\":" : "{\"name\":");
        rlhf__bytes_string(b, in->call[k].name);
        rlhf__bytes_text(b, ",\"arguments\":");
        rlhf__bytes_json(b, in->call[k].arguments);
        rlhf__bytes_text(b, "}");
    }
    rlhf__bytes_text(b, "]");
}

static const char *end_name(int32_t end) {
    static const char *const names[] = {"open",        "done",  "truncated",
                                        "turn_length", "turns", "length"};
    return end >= 0 && (size_t)end < sizeof names / sizeof *names ? names[end] : "other";
}

void rlhf__asked_line(struct rlhf__bytes *b, enum rlhf__asked what, const rlhf_episode_in *in,
                      uint32_t i, uint64_t as) {
    begin(b, rlhf__asked_name(what), as);
    if (what == RLHF__ASKED_RESET) reset(b, in, i);
    if (what == RLHF__ASKED_STEP) step(b, in, i);
    if (what == RLHF__ASKED_FINISH) {
        rlhf__bytes_text(b, ",\"end\":\"");
        rlhf__bytes_text(b, end_name(in->end[i]));
        rlhf__bytes_text(b, "\"");
    }
    rlhf__bytes_text(b, "}\n");
}

void rlhf__asked_close(struct rlhf__bytes *b, uint64_t as) {
    begin(b, "close", as);
    rlhf__bytes_text(b, "}\n");
}
