/* SPDX-License-Identifier: Apache-2.0
 *
 * data_bytes.c: any file, a token a byte.
 */
#include "data.h"

static int bytes_open(Source *s, const DataFile *f)
{
    return data_piece(s, f, 0, DATA_U8, (int64_t)f->size);
}

const DataFormat data_bytes = {"bytes", STREAM, bytes_open, NULL, NULL};
