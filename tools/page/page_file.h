// page_file.h: checks the file to which a page will be written.
#ifndef RLHF_TOOLS_PAGE_PAGE_FILE_H
#define RLHF_TOOLS_PAGE_PAGE_FILE_H

#include "page/page.h"

// Refuse to write a page to `path` if a file exists there that is not a page of this program. Links
// are refused too. Errors: RLHF_E_INVALID, with a message that begins with `command`. [main]
rlhf_status rlhf__page_file_check(const char *command, const char *path, struct rlhf__error *err);

#endif
