/* SPDX-License-Identifier: Apache-2.0
 *
 * PositionEmbedding where position 0 is where a document of the sample begins.  dweight[t] has the samples ascending, in each
 * its documents.
 */
#include "documents.h"
#include "kernel.h"

enum { DOCUMENT_COLUMNS = 64 };

void position_documents_forward(Stage *st, real *y, const real *x, const int32_t *documents, const real *weight, long batch,
                                long seq, long width, long offset)
{
    EACH(batch * seq * width >= 1 << 15)
    for (long row = 0; row < batch * seq; row++) {
        const int32_t *of = documents + row / seq * seq;
        const real *from = weight + (row % seq - document_begin(of, row % seq) + offset) * width;
        for (long j = 0; j < width; j++)
            put(y, row * width + j, get(x, row * width + j) + get(from, j));
    }
}

/* Columns from .. from+n-1 of all rows of the table. */
static void add_documents(float *dweight, const real *dy, const int32_t *documents, long batch, long seq, long width, long from,
                          long n)
{
    for (long row = 0, t = 0; row < batch * seq; row++) {
        t = row % seq && documents[row] == documents[row - 1] ? t + 1 : 0;
        for (long j = from; j < from + n; j++)
            dweight[t * width + j] += get(dy, row * width + j);
    }
}

void position_documents_backward(Stage *st, float *dweight, const real *dy, const int32_t *documents, int acc, long batch,
                                 long seq, long width, long rows, long offset)
{
    if (!acc)
        memset(dweight, 0, (size_t)(rows * width) * sizeof *dweight);
    EACH(batch * seq * width >= 1 << 15)
    for (long from = 0; from < width; from += DOCUMENT_COLUMNS)
        add_documents(dweight + offset * width, dy, documents, batch, seq, width, from, least(DOCUMENT_COLUMNS, width - from));
}
