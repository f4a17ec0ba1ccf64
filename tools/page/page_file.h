// page_file.h: checks the file to which a page will be written.
#ifndef RLHF_TOOLS_PAGE_PAGE_FILE_H
#define RLHF_TOOLS_PAGE_PAGE_FILE_H

#include "page/page.h"

// Check that a page may be written to `path`. If a file exists there, it must be a page of this
// program and not a link. Errors: RLHF_E_INVALID, with a message that begins with `command`. [main]
rlhf_status rlhf__page_file_check(const char *command, const char *path, struct rlhf__error *err);

#endif
