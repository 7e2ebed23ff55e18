/* SPDX-License-Identifier: Apache-2.0
 *
 * llmc.c: a checkpoint of llm.c (version 3, or 5: BF16) from the published weights of a GPT-2, so that tests need no Python.
 *
 *     llmc MODEL.safetensors FILE.bin T V L H D VERSION     with three rows more than V
 *
 * What train_gpt2.py of llm.c does: tensors of one kind behind each other, layer by layer, matrices as [out, in].
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned char *text;
static float *data;
static FILE *out;
static int size = 4;            /* of a number; 2: the high half, whose low one is 0 */

static const float *tensor(const char *name)
{
    char key[160];
    snprintf(key, sizeof key, "\"%s\":{", name);
    const char *at = strstr((char *)text + 8, key), *offset = at ? strstr(at, "data_offsets\":[") : NULL;
    if (!offset) {
        fprintf(stderr, "llmc: no tensor %s\n", name);
        exit(1);
    }
    return data + strtol(offset + 15, NULL, 10) / 4;
}

static void put(const char *name, int layers, int out_, int in, int turned)
{
    char full[128];
    for (int l = 0; l < layers; l++) {
        snprintf(full, sizeof full, name, l);
        const float *x = tensor(full);
        for (int i = 0; i < out_ * in; i++)
            fwrite((const char *)&x[turned ? i % in * out_ + i / in : i] + 4 - size, (size_t)size, 1, out);
    }
}

int main(int argc, char **argv)
{
    if (argc != 9)
        return 2;
    int T = atoi(argv[3]), V = atoi(argv[4]), L = atoi(argv[5]), H = atoi(argv[6]), D = atoi(argv[7]);
    int32_t header[256] = {20240326, atoi(argv[8]), T, V, L, H, D, V + 3};
    size = header[1] == 5 ? 2 : 4;
    FILE *in = fopen(argv[1], "rb");
    text = calloc(1, 1 << 20);
    out = fopen(argv[2], "wb");
    if (!in || !text || !out || fread(text, 1, (1 << 20) - 1, in) < 8)
        return 1;
    uint64_t n;
    memcpy(&n, text, 8);
    data = (float *)(void *)(text + 8 + n);
    fwrite(header, 4, 256, out);
    put("wte.weight", 1, V, D, 0);
    for (int i = 0; i < 3 * D; i++)
        fwrite("padd", (size_t)size, 1, out);
    put("wpe.weight", 1, T, D, 0);
    put("h.%d.ln_1.weight", L, 1, D, 0);
    put("h.%d.ln_1.bias", L, 1, D, 0);
    put("h.%d.attn.c_attn.weight", L, 3 * D, D, 1);
    put("h.%d.attn.c_attn.bias", L, 1, 3 * D, 0);
    put("h.%d.attn.c_proj.weight", L, D, D, 1);
    put("h.%d.attn.c_proj.bias", L, 1, D, 0);
    put("h.%d.ln_2.weight", L, 1, D, 0);
    put("h.%d.ln_2.bias", L, 1, D, 0);
    put("h.%d.mlp.c_fc.weight", L, 4 * D, D, 1);
    put("h.%d.mlp.c_fc.bias", L, 1, 4 * D, 0);
    put("h.%d.mlp.c_proj.weight", L, D, 4 * D, 1);
    put("h.%d.mlp.c_proj.bias", L, 1, D, 0);
    put("ln_f.weight", 1, 1, D, 0);
    put("ln_f.bias", 1, 1, D, 0);
    return fclose(out) != 0;
}
