// http_openenv_message.c: see http_openenv_message.h.
#include "http_openenv_message.h"

#include "process/row_text.h"
#include "process/utf8.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SHOWN = 160, FAULTS = 3, LOC_MOST = 8 };

// The metric environment/refused_turns is the number of turns of an episode that were not valid
// actions.
#define REFUSED "refused_turns"

// ---- what is sent ----

static void write_reset(struct rlhf__bytes *out, const rlhf_episode_in *in, uint32_t i) {
    char text[80];
    // 31 bits, which every generator of random numbers accepts
    snprintf(text, sizeof text, "{\"type\":\"reset\",\"data\":{\"seed\":%llu}}",
             (unsigned long long)(in->seed[i] >> 33));
    rlhf__bytes_text(out, text);
}

static void write_step(const struct rlhf__openenv *o, struct rlhf__bytes *out, rlhf_str turn) {
    rlhf__bytes_text(out, "{\"type\":\"step\",\"data\":");
    if (strcmp(o->action, "json") == 0) {
        // Only checks the turn, which is sent as it is. Anything else than an object becomes an
        // empty action, which the server refuses.
        rlhf_row *row = NULL;
        if (turn.len && o->rows->open(o->host, turn, &row) == RLHF_OK)
            rlhf__bytes_add(out, turn.ptr, (size_t)turn.len);
        else
            rlhf__bytes_text(out, "{}");
        o->rows->close(o->host, row);
    } else {
        rlhf__bytes_text(out, "{");
        rlhf__bytes_string(out, (rlhf_str){o->action, strlen(o->action)});
        rlhf__bytes_text(out, ":");
        rlhf__bytes_string(out, turn);
        rlhf__bytes_text(out, "}");
    }
    rlhf__bytes_text(out, "}");
}

void rlhf__openenv_write(const struct rlhf__openenv *o, enum rlhf__asked what,
                         const rlhf_episode_in *in, uint32_t i, struct rlhf__bytes *out) {
    if (what == RLHF__ASKED_RESET)
        write_reset(out, in, i);
    else
        write_step(o, out, in->text[i]);
}

// ---- what is read ----

// A message of the server, with the option `observation` as a path in it.
struct message {
    const struct rlhf__openenv *o;
    rlhf_row *row; // NULL: it is not a JSON object
    char path[300];
};

static int32_t type_at(const struct message *m, const char *path) {
    return m->row ? m->o->rows->type(m->o->host, m->row, path) : RLHF_JSON_ABSENT;
}

static int is_text(const struct message *m, const char *path, const char *text) {
    rlhf_str s;
    return type_at(m, path) == RLHF_JSON_STRING &&
           m->o->rows->string(m->o->host, m->row, path, &s) == RLHF_OK && s.len == strlen(text) &&
           memcmp(s.ptr, text, strlen(text)) == 0;
}

// Append the members of the observation that the policy reads, as an object.
static void put_members(const struct message *m, struct rlhf__bytes *out) {
    static const char *const beside[] = {"reward", "done", "metadata"};
    const rlhf_row_service *rows = m->o->rows;
    const char *comma = "";
    uint64_t n = 0;
    rlhf__bytes_text(out, "{");
    if (rows->length(out->host, m->row, m->path, &n) < 0) out->full = 1;
    for (uint64_t k = 0; !out->full && k < n; k++) {
        rlhf_row *item = NULL;
        rlhf_str key;
        if (rows->key(out->host, m->row, m->path, k, &key) < 0 ||
            rows->item(out->host, m->row, m->path, k, &item) < 0)
            out->full = 1;
        int hidden = out->full;
        for (size_t b = 0; !hidden && b < 3; b++)
            hidden = key.len == strlen(beside[b]) && memcmp(key.ptr, beside[b], key.len) == 0;
        if (!hidden) {
            rlhf__bytes_text(out, comma);
            rlhf__bytes_string(out, key);
            rlhf__bytes_text(out, ": ");
            rlhf__row_text(rows, item, "", 0, out);
            comma = ", ";
        }
        rows->close(out->host, item);
    }
    rlhf__bytes_text(out, "}");
}

static rlhf_status say(const struct message *m, const rlhf_episode_out *out, uint32_t i) {
    struct rlhf__bytes text = {.host = m->o->host};
    if (!m->o->observation && type_at(m, m->path) == RLHF_JSON_OBJECT)
        put_members(m, &text);
    else
        rlhf__row_text(m->o->rows, m->row, m->path, 1, &text);
    const rlhf_status st = text.full
                               ? RLHF_E_NOMEM
                               : rlhf_say(out, i, RLHF_ROLE_USER, (rlhf_str){text.data, text.len});
    rlhf__bytes_finish(&text);
    return st;
}

// Append ": action: Input should be 'UP', ..." for the first faults that the server lists.
static void add_faults(const struct message *m, struct rlhf__bytes *text) {
    const rlhf_row_service *rows = m->o->rows;
    char path[80];
    for (int k = 0; k < FAULTS; k++) {
        snprintf(path, sizeof path, "/data/errors/%d", k);
        if (type_at(m, path) == RLHF_JSON_ABSENT) return;
        rlhf__bytes_text(text, k ? "; " : ": ");
        for (int i = 0; i < LOC_MOST; i++) {
            snprintf(path, sizeof path, "/data/errors/%d/loc/%d", k, i);
            if (type_at(m, path) != RLHF_JSON_STRING) continue; // an index
            rlhf__row_text(rows, m->row, path, 1, text);
            rlhf__bytes_text(text, ": ");
        }
        snprintf(path, sizeof path, "/data/errors/%d/msg", k);
        if (type_at(m, path) == RLHF_JSON_STRING)
            rlhf__row_text(rows, m->row, path, 1, text);
        else
            rlhf__bytes_text(text, "wrong");
    }
}

// Handles the server's refusal of a turn: the turn is not a valid action or, with `reads_errors`,
// the action failed. The policy then reads the reason, the episode continues, and this function
// returns 1. Otherwise returns 0.
static int take_refusal(const struct message *m, struct rlhf__openenv_state *s,
                        const rlhf_episode_out *out, uint32_t i) {
    struct rlhf__bytes text = {.host = m->o->host};
    const int is_read = m->o->reads_errors && is_text(m, "/data/code", "EXECUTION_ERROR");
    if (!is_read && !is_text(m, "/data/code", "VALIDATION_ERROR")) return 0;
    rlhf__bytes_text(&text, "error: ");
    if (type_at(m, "/data/message") == RLHF_JSON_STRING)
        rlhf__row_text(m->o->rows, m->row, "/data/message", 1, &text);
    else
        rlhf__bytes_text(&text, "invalid action");
    add_faults(m, &text);
    const int good =
        !text.full && rlhf_say(out, i, RLHF_ROLE_USER, (rlhf_str){text.data, text.len}) == RLHF_OK;
    rlhf__bytes_finish(&text);
    if (good) out->metric(out, i, REFUSED, (double)++s->refused, 1, RLHF_COMBINE_MEAN);
    return good;
}

// Reads the reward and the end of a step. Steps without a reward have null, which counts as 0. If
// the values are of another kind, returns 0 with the reason in `why`.
static int take_reward(const struct message *m, const rlhf_episode_out *out, uint32_t i,
                       char *why) {
    const rlhf_host *host = m->o->host;
    const rlhf_row_service *rows = m->o->rows;
    const int32_t done = type_at(m, "/data/done");
    int32_t ends = 0;
    double value = 0;
    if (type_at(m, "/data/reward") != RLHF_JSON_ABSENT &&
        !rlhf__row_reward(host, rows, m->row, "/data/reward", &value)) {
        struct rlhf__bytes text = {.host = host};
        char shown[SHOWN];
        rlhf__row_text(rows, m->row, "/data/reward", 0, &text);
        snprintf(why, RLHF__SOCKET_WHY,
                 "the reward that it sent, %s, is %s; expected a number, true, false or null",
                 rlhf__utf8_shown(text.data ? text.data : "", text.len, shown, sizeof shown),
                 rlhf__row_kind(host, rows, m->row, "/data/reward"));
        rlhf__bytes_finish(&text);
        return 0;
    }
    if (done != RLHF_JSON_ABSENT && done != RLHF_JSON_BOOL && done != RLHF_JSON_NULL) {
        snprintf(why, RLHF__SOCKET_WHY, "the \"done\" that it sent is %s; expected true or false",
                 rlhf__row_kind(host, rows, m->row, "/data/done"));
        return 0;
    }
    if (done == RLHF_JSON_BOOL) rows->boolean(host, m->row, "/data/done", &ends);
    out->reward[i] = isnan(value) ? 0 : (float)value;
    if (ends) out->end[i] = RLHF_EPISODE_DONE;
    return 1;
}

// Takes an observation. If the message is something else, returns 0 with the reason in `why`.
static int take_observation(const struct message *m, struct rlhf__openenv_state *s,
                            const struct rlhf__bytes *text, const rlhf_episode_out *out, uint32_t i,
                            char *why) {
    const int seen = type_at(m, "/data/observation") != RLHF_JSON_ABSENT;
    char shown[SHOWN];
    if (!is_text(m, "/type", "observation") || type_at(m, m->path) == RLHF_JSON_ABSENT) {
        snprintf(why, RLHF__SOCKET_WHY, "it answered %s: %s",
                 rlhf__utf8_shown(text->data ? text->data : "", text->len, shown, sizeof shown),
                 seen ? "the option observation names nothing in it" : "it is not an observation");
        return 0;
    }
    if (s->asked == RLHF__ASKED_RESET)
        out->metric(out, i, REFUSED, (double)(s->refused = 0), 1, RLHF_COMBINE_MEAN);
    else if (!take_reward(m, out, i, why))
        return 0;
    if (say(m, out, i) == RLHF_OK) return 1;
    snprintf(why, RLHF__SOCKET_WHY, "its text could not be added to the episode");
    return 0;
}

static void read_message(const struct rlhf__openenv *o, const struct rlhf__bytes *text,
                         struct message *m) {
    *m = (struct message){.o = o};
    snprintf(m->path, sizeof m->path, "/data/observation%s", o->observation ? o->observation : "");
    if (text->len) o->rows->open(o->host, (rlhf_str){text->data, text->len}, &m->row);
}

int rlhf__openenv_take(const struct rlhf__openenv *o, struct rlhf__openenv_state *s,
                       const struct rlhf__bytes *text, const rlhf_episode_out *out, uint32_t i,
                       char *why) {
    struct message m;
    read_message(o, text, &m);
    const int refused = !is_text(&m, "/type", "observation") && s->asked == RLHF__ASKED_STEP &&
                        take_refusal(&m, s, out, i);
    const int good = refused || take_observation(&m, s, text, out, i, why);
    o->rows->close(o->host, m.row);
    return good;
}

int rlhf__openenv_is_full(const struct rlhf__openenv *o, const struct rlhf__bytes *text) {
    struct message m;
    read_message(o, text, &m);
    const int full = is_text(&m, "/data/code", "CAPACITY_REACHED");
    o->rows->close(o->host, m.row);
    return full;
}
