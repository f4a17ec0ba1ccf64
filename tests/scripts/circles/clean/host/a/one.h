// Two nouns may know each other: one and two. three takes nothing that ties it to them.
#ifndef ONE_H
#define ONE_H
struct two;
struct one {
    int third; // a member named like three's function
};
int one_of(const struct two *t);
#endif
