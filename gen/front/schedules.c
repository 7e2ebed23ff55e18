/* SPDX-License-Identifier: Apache-2.0
 *
 * schedules.c: the traits of each schedule, by the word that the model file has for it.  order.c has their lists.
 */
#include "model.h"

#include <string.h>

const Schedule schedules[] = {
#define SCHEDULE(word, make, text, ...) {.name = word, .about = text, __VA_ARGS__},
#define LATER(word)
#include "schedules.def"
#undef SCHEDULE
    {.name = NULL}
};

const char schedule_words[] = "auto"
#define SCHEDULE(word, ...) " " word
#include "schedules.def"
#undef SCHEDULE
#undef LATER
#define SCHEDULE(word, ...)
#define LATER(word) " " word
#include "schedules.def"
;

const Schedule *schedule_of(const char *name)
{
    for (const Schedule *k = schedules; k->name; k++)
        if (strcmp(name, "auto") ? !strcmp(k->name, name) : k->usual)
            return k;
    return NULL;
}
