/* SPDX-License-Identifier: Apache-2.0
 *
 * letters.c: the letters of -d, one for each pass that leaves something to print.
 */
#include "text.h"

const Dump dumps[] = {
    {'b', "build",  "forward operators, blocks and repeats expanded"},
    {'s', "shape",  "shapes, types, bytes, states"},
    {'g', "grad",   "backward and update operators"},
    {'f', "fuse",   "neighbours that are one call: the const Graph"},
    {'o', "order",  "computations of each device"},
    {'p', "part",   "operator -> chunk"},
    {'k', "keep",   "tensor -> keep, recompute or offload"},
    {'c', "comm",   "the whole action lists"},
    {'l', "lower",  "routines, buffers, pools"},
    {'m', "mem",    "offsets and owner intervals"},
    {'t', "sim",    "predicted times"},
    {'a', "all",    "the whole plan, for --from"},
    {0, NULL, NULL},
};
