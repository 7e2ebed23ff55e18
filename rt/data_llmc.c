/* SPDX-License-Identifier: Apache-2.0
 *
 * data_llmc.c: token files of llm.c: 256 int32 (magic, version, number of tokens, zeros), then the tokens, all little
 * endian.  Magic and version give the width: GPT-2 tokens are u16, Llama 3 tokens u32.
 */
#include "data.h"

enum { HEADER = 1024 };

static const struct { uint32_t magic, version; Element kind; } kinds[] = {
    {20240520, 1, DATA_U16}, {20240801, 7, DATA_U32}
};

static int llmc_open(Source *s, const DataFile *f)
{
    if (f->size < HEADER)
        return complain(STATUS_RUN, "data: %s is no llm.c token file: %zu bytes, its header alone has %d", f->path,
                        f->size, HEADER);
    uint32_t magic = (uint32_t)data_bits(f->at, 4), version = (uint32_t)data_bits(f->at + 4, 4);
    uint64_t count = data_bits(f->at + 8, 4);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (kinds[i].magic != magic || kinds[i].version != version)
            continue;
        if (f->size - HEADER != count * data_width(kinds[i].kind))
            return complain(STATUS_RUN, "data: %s is cut short or too long: its header promises %llu tokens of %zu "
                            "bytes, it has %zu bytes", f->path, (unsigned long long)count,
                            data_width(kinds[i].kind), f->size - HEADER);
        return data_piece(s, f, HEADER, kinds[i].kind, (int64_t)count);
    }
    return complain(STATUS_RUN, "data: %s is no llm.c token file: magic %u, version %u; known are 20240520 version 1 "
                    "and 20240801 version 7", f->path, magic, version);
}

const DataFormat data_llmc = {"llmc-tokens", STREAM, llmc_open, NULL, NULL};
