struct mid;
int down_of(const struct mid *m);
