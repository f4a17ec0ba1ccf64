// form_jinja.h: the templates of the fixed set as Jinja, for other programs: what transformers
// makes of them is what style.c writes.
//
// What it is not: read by this program, except as any model's own template (probe.h). Internal to
// chat/.
#ifndef RLHF_HOST_CHAT_FORM_JINJA_H
#define RLHF_HOST_CHAT_FORM_JINJA_H

// By the form's name; NULL = there is no such form. [any]
const char *rlhf__form_jinja(const char *name);

#endif
