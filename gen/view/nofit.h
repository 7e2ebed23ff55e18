/* SPDX-License-Identifier: Apache-2.0
 *
 * nofit.h: the answer when no plan fits.
 */
#ifndef NOFIT_H
#define NOFIT_H
#include "options.h"

/* failed: the last plan tried, NULL if there was none to try.  Ends with status 4. */
void nofit(const Options *x, const Plan *failed) NORETURN;
/* By how many bytes it does not fit the device that lacks most; device is -1 where no device does, but a host or a cut. */
Bytes nofit_lacks(const Plan *failed, int *device);
#endif
