/* SPDX-License-Identifier: Apache-2.0
 *
 * element.h: whoever includes it calls a kernel of element.cu by the name of rt.h, so that file comes along into a job.
 */
#ifndef ELEMENT_H
#define ELEMENT_H
#include "../../rt.h"
#endif
