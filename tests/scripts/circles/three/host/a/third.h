struct first;
#define THIRD(n) ((n) + 3)
int third_of(const struct first *f);
