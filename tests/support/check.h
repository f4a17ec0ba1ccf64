// check.h: CMocka with the includes that its 1.1.5 header needs before it.
#ifndef RLHF_TESTS_SUPPORT_CHECK_H
#define RLHF_TESTS_SUPPORT_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define CHECK_COUNT(a) (sizeof(a) / sizeof(*(a)))

#endif
