// notes.h: the findings about a run, as a list of sentences. Each sentence has the rule that led to
// it and advice on what to change.
//
// After a failed allocation, the list is bad. Later additions then do nothing, and rlhf__notes_ok
// returns the failure.
#ifndef RLHF_FORMATS_VERDICT_NOTES_H
#define RLHF_FORMATS_VERDICT_NOTES_H

#include "base/error.h"
#include "verdict/trend.h"

enum rlhf__note_level { RLHF__NOTE_BAD, RLHF__NOTE_WARN, RLHF__NOTE_INFO };

// rules.c says of each rule which flags its notes have.
enum rlhf__note_flag {
    RLHF__NOTE_ONCE = 1, // a run reports the problem after one phase; otherwise it is a trend
    RLHF__NOTE_LOST = 2, // the policy is lost; most other problems are consequences
    RLHF__NOTE_AFTER = 4 // it is reported also of a policy that is lost
};

struct rlhf__run_note {
    int32_t level;
    uint32_t flags;
    const char *id;         // "flat_groups": a name for scripts; static
    const char *rule;       // the rule in words; static, NULL: none
    const char *change;     // the likely cause and the setting to change; NULL: none
    struct rlhf__held held; // since which phase it holds; phase 0: the sentence does not say
    char *text;             // a sentence
};

struct rlhf__notes {
    struct rlhf__run_note *all;
    size_t n, cap;
    int32_t bad;
};

void rlhf__notes_finish(struct rlhf__notes *); // accepts a zeroed list [any]

// Append a copy of *form and of its `change`, with the sentence that `fmt` and its arguments make.
// [any]
__attribute__((format(printf, 3, 4))) void
rlhf__notes_add(struct rlhf__notes *, const struct rlhf__run_note *form, const char *fmt, ...);

// _drop: remove note i. _silence: take its advice away. [any]
void rlhf__notes_drop(struct rlhf__notes *, size_t i);
void rlhf__notes_silence(struct rlhf__notes *, size_t i);

// Sort the notes by level, the worst first. Notes of the same level keep their order. [any]
void rlhf__notes_sort(struct rlhf__notes *);

// Returns RLHF_OK, or RLHF_E_NOMEM if an addition failed. [any]
rlhf_status rlhf__notes_ok(const struct rlhf__notes *, struct rlhf__error *err);

// The note with this id, or NULL. Borrowed. [any]
const struct rlhf__run_note *rlhf__notes_find(const struct rlhf__notes *, const char *id);

// Write v with three significant digits. Values from 1,000 to 1e15 are written without an exponent.
// Returns `out`.
const char *rlhf__figure(double v, char out[40]);

#endif
