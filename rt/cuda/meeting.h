/* SPDX-License-Identifier: Apache-2.0
 *
 * meeting.h: the processes of a job find each other, exchange a few bytes now and then, and notice who is gone.
 */
#ifndef MEETING_H
#define MEETING_H
#include <stdbool.h>
#include <stddef.h>

enum { MEETING_SHARE = 256 };
typedef struct Meeting Meeting;

int meeting_patience(void);         /* seconds: DPGEN_TIMEOUT */
/* Waits for all processes, as long as DPGEN_TIMEOUT says.  number: of this process in the order of the job, of `size`.  NULL:
 * said why; *status is set. */
Meeting *meeting_open(int number, int size, int *status);
/* Everyone gives `bytes` (at most MEETING_SHARE) and gets those of all, by number.  false: someone is gone, and nobody watches
 * yet, or any more. */
bool meeting_share(Meeting *m, const void *mine, void *all, size_t bytes);
/* A line from..to for each of the ordered pairs that have `talk`: line[i], a descriptor, where this process is one of the two,
 * else -1.  Everyone calls it.  A status. */
int  meeting_lines(Meeting *m, const int *pair, const char *talk, int pairs, int *line);
/* Bytes over a line to the other one, or from it.  false: it is gone. */
bool meeting_pass(Meeting *m, int line, int other, void *data, size_t bytes, bool sending);
/* From now on the end of another process calls gone(with, its number), which does not return, and look(with) is called several
 * times a second; until meeting_close(). */
int  meeting_watch(Meeting *m, void (*gone)(void *, int), void (*look)(const void *), void *with);
void meeting_close(Meeting *m);
#endif
