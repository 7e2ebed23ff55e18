/* SPDX-License-Identifier: Apache-2.0
 *
 * documents.h: where a document begins among those of a sample.
 */
#ifndef DOCUMENTS_H
#define DOCUMENTS_H
#include <stdint.h>

/* The first position of the document that position t is of; documents: the numbers of one sample. */
static inline long document_begin(const int32_t *documents, long t)
{
    while (t > 0 && documents[t - 1] == documents[t])
        t--;
    return t;
}
#endif
