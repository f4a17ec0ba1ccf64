// jinja_letter.h: the letters of all of Unicode as Python's strings know them: lower and upper
// case, titles, digits, white space.
//
// The tables are utf8proc's, in Unicode 15 or later; each version of Python has its own.
#ifndef RLHF_FORMATS_VALUES_JINJA_LETTER_H
#define RLHF_FORMATS_VALUES_JINJA_LETTER_H

#include <stddef.h>
#include <stdint.h>

enum { RLHF__LETTER_MAX = 4 }; // code points that one character can become

enum rlhf__letter_case {
    RLHF__LETTER_UPPER,
    RLHF__LETTER_LOWER,
    RLHF__LETTER_TITLE,
    RLHF__LETTER_FOLD
};

// Writes a character in upper case, lower case, title case, or folded for comparisons. Returns the
// number of code points. Does not know the final sigma. [any]
size_t rlhf__letter_to(enum rlhf__letter_case, uint32_t cp, uint32_t out[RLHF__LETTER_MAX]);

// The functions below return 1 if the character belongs to the kind. [any]
int rlhf__letter_is_lower(uint32_t cp);
int rlhf__letter_is_upper(uint32_t cp);
int rlhf__letter_is_title(uint32_t cp);
int rlhf__letter_is_cased(uint32_t cp);     // one of the three above
int rlhf__letter_is_ignorable(uint32_t cp); // case is decided by the letters around it
int rlhf__letter_is_alpha(uint32_t cp);
int rlhf__letter_is_decimal(uint32_t cp); // with a value that int() reads
int rlhf__letter_is_digit(uint32_t cp);   // also superscripts and digits in circles
int rlhf__letter_is_alnum(uint32_t cp);   // also other numbers
int rlhf__letter_is_space(uint32_t cp);
int rlhf__letter_is_line_end(uint32_t cp);
int rlhf__letter_is_printable(uint32_t cp); // by repr(), without an escape
int rlhf__letter_is_name(uint32_t cp);      // part of a variable's name

// The value of a decimal digit. [any]
int rlhf__letter_digit(uint32_t cp);

// Returns the length of the character at s, which has n >= 1 bytes, and sets *cp. An invalid byte
// is a character of one byte, U+FFFD. [any]
size_t rlhf__letter_at(const char *s, size_t n, uint32_t *cp);

// Writes a code point as UTF-8. Returns the number of bytes. [any]
size_t rlhf__letter_put(uint32_t cp, char out[4]);

#endif
