/* SPDX-License-Identifier: Apache-2.0
 *
 * data_sum.c: which data a job runs on.
 *
 * `make expected` wants the SHA-256 of every file, which sha256sum finds too.  A checkpoint wants to know its data again, and
 * a corpus may take minutes to read: there a sum over the sizes of the files, up to MOST blocks of each, and the order of
 * the elements stands for them.  Names do not count, so data may move.  Not found: a change between the blocks that keeps the
 * size.
 */
#include <unistd.h>
#include "data.h"
#include "little.h"
#include "sha256.h"

enum { ALL = 4096, MOST = 64, BLOCK = 4096 };

static void add_file(Digest *d, const DataFile *f, size_t blocks)
{
    int64_t size = (int64_t)f->size;
    little(&size, 1, sizeof size);
    digest_add(d, &size, sizeof size);
    for (size_t i = 0; i < blocks; i++) {
        size_t at = f->size > blocks * BLOCK ? (f->size - BLOCK) / blocks * i : i * BLOCK;
        if (at < f->size)
            digest_add(d, f->at + at, f->size - at < BLOCK ? f->size - at : BLOCK);
    }
}

void data_fingerprint(const Loader *l, char hex[65])
{
    const Source *s = &l->train;
    int blocks = s->files * MOST <= ALL ? MOST : s->files < ALL ? ALL / s->files : 1;
    Digest d;
    digest_start(&d);
    for (int i = 0; i < s->files; i++)
        add_file(&d, &s->file[i], (size_t)blocks);
    for (int64_t i = 0; i < s->pieces; i++) {
        int64_t piece[4] = {s->piece[i].file - s->file, (int64_t)s->piece[i].offset, s->piece[i].kind, s->piece[i].n};
        little(piece, 4, sizeof *piece);
        digest_add(&d, piece, sizeof piece);
    }
    digest_end(&d, hex);
}

static int say_file(const DataFile *f)
{
    char hex[65], line[4300];
    Text t = {line, 0, sizeof line};
    digest_of(f->at, f->size, hex);
    text_add(&t, "data %s  %s\n", hex, f->path);
    if (!write_all(STDOUT_FILENO, line, t.n < t.cap ? t.n : t.cap - 1))
        return complain(STATUS_RUN, "--record: cannot write to standard output");
    return DONE;
}

int data_record(const Loader *l)
{
    int status = DONE;
    for (int eval = 0; eval < 2; eval++) {
        const Source *s = eval ? &l->eval : &l->train;
        for (int i = 0; i < s->files && status == DONE; i++) {
            status = say_file(&s->file[i]);
            if (status == DONE && s->format->beside)
                status = s->format->beside(&s->file[i], say_file);
        }
    }
    return status;
}
