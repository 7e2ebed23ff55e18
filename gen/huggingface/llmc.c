/* SPDX-License-Identifier: Apache-2.0
 *
 * llmc.c: checkpoints of llm.c: GPT-2 as 256 numbers of 32 bits and the tensors of its parameters, all layers of one kind
 * behind each other.
 *
 * Source: A. Karpathy, llm.c, train_gpt2.c, gpt2_build_from_checkpoint.  Version 3 has F32, version 5 BF16.  Rows of the table
 * of words behind its V are padding, and are left out.  The model file is that of config.json, and the weights beside it have
 * the names and axes of published ones.
 */
#include "hf.h"
#include "import/net.h"

enum { MAGIC = 20240326, HEADER = 1024, MOST_LAYERS = 4096 };
typedef struct { const char *path, *type; const unsigned char *at; int64_t size, T, V, L, H, D, rows; } File;

/* In the order of the file; h. in the name: one a layer.  high and wide: sizes in units of D, 0: none; turned: the published
 * matrix has its axes the other way round. */
static const struct { const char *name; int high, wide; bool turned; } kinds[] = {
    {"wte.weight", -1, 1, false}, {"wpe.weight", -2, 1, false}, {"h.%d.ln_1.weight", 0, 1, false},
    {"h.%d.ln_1.bias", 0, 1, false}, {"h.%d.attn.c_attn.weight", 3, 1, true}, {"h.%d.attn.c_attn.bias", 0, 3, false},
    {"h.%d.attn.c_proj.weight", 1, 1, true}, {"h.%d.attn.c_proj.bias", 0, 1, false}, {"h.%d.ln_2.weight", 0, 1, false},
    {"h.%d.ln_2.bias", 0, 1, false}, {"h.%d.mlp.c_fc.weight", 4, 1, true}, {"h.%d.mlp.c_fc.bias", 0, 4, false},
    {"h.%d.mlp.c_proj.weight", 1, 4, true}, {"h.%d.mlp.c_proj.bias", 0, 1, false}, {"ln_f.weight", 0, 1, false},
    {"ln_f.bias", 0, 1, false}
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static int64_t number(const File *f, int i)
{
    const unsigned char *at = f->at + 4 * i;
    return (int64_t)at[0] | (int64_t)at[1] << 8 | (int64_t)at[2] << 16 | (int64_t)(at[3] & 0x7f) << 24;
}

/* Elements in the file; *high rows are kept. */
static int64_t elements(const File *f, int kind, int64_t *high, int64_t *wide)
{
    int h = kinds[kind].high;
    *high = h == -1 ? f->V : h == -2 ? f->T : h ? h * f->D : 1;
    *wide = kinds[kind].wide * f->D;
    return (h == -1 ? f->rows : *high) * *wide;
}

static bool layered(int kind)
{
    return strstr(kinds[kind].name, "%d");
}

static void open_file(File *f)
{
    size_t n;
    f->at = file_map(f->path, EXIT_USAGE, &n);
    int64_t version = n < HEADER || number(f, 0) != MAGIC ? 0 : number(f, 1), high, wide, all = 0;
    if (version != 3 && version != 5)
        fail(EXIT_MODEL, "%s: this is no checkpoint of llm.c, version 3 or 5: it does not begin with %d", f->path, MAGIC);
    f->type = version == 3 ? "F32" : "BF16";
    f->size = version == 3 ? 4 : 2;
    f->T = number(f, 2), f->V = number(f, 3), f->L = number(f, 4), f->H = number(f, 5), f->D = number(f, 6);
    f->rows = number(f, 7);
    bool good = f->T > 0 && f->V > 0 && f->L > 0 && f->L <= MOST_LAYERS && f->H > 0 && f->D > 0 && f->D <= 1 << 20 &&
        f->rows >= f->V && f->T <= 1 << 24 && f->rows <= 1 << 24;
    for (int i = 0; i < KINDS && good; i++)
        all += elements(f, i, &high, &wide) * (layered(i) ? f->L : 1);
    if (!good || (int64_t)n != HEADER + all * f->size)
        fail(EXIT_MODEL, "%s: it has %zu bytes, and its header wants %lld: it is cut short or no model", f->path, n,
             good ? (long long)(HEADER + all * f->size) : -1LL);
}

typedef struct { SafeTensor as; const unsigned char *from; int64_t high, wide; bool turned; } LlmcTensor;

static void write_weights(const File *x, const char *path)
{
    VEC(LlmcTensor) tensor = {0};
    VEC(SafeTensor) header = {0};
    const unsigned char *at = x->at + HEADER;
    for (int k = 0; k < KINDS; k++)
        for (int layer = 0; layer < (layered(k) ? (int)x->L : 1); layer++) {
            LlmcTensor t = {.from = at, .turned = kinds[k].turned};
            at += elements(x, k, &t.high, &t.wide) * x->size;
            const char *mark = strstr(kinds[k].name, "%d");
            t.as.name = mark ? strf("h.%d%s", layer, mark + 2) : kinds[k].name;
            t.as.type = x->type;
            t.as.ndim = kinds[k].high ? 2 : 1;
            t.as.dim[0] = !kinds[k].high || t.turned ? t.wide : t.high;
            t.as.dim[1] = t.turned ? t.high : t.wide;
            t.as.bytes = t.high * t.wide * x->size;
            *PUSH(&tensor) = t;
            *PUSH(&header) = t.as;
        }
    FILE *f = file_begin(path);
    safe_header(f, header.at, header.n);
    for (EACH(const LlmcTensor, t, tensor)) {
        if (!t->turned)
            fwrite(t->from, 1, (size_t)(t->high * t->wide * x->size), f);
        for (int64_t i = 0; t->turned && i < t->high * t->wide; i++)
            fwrite(t->from + (i % t->high * t->wide + i / t->high) * x->size, 1, (size_t)x->size, f);
    }
    file_end(f, path);
}

bool llmc_knows(const char *path)
{
    return text_without(path, ".bin");
}

int llmc_import(const char *path, const char *out)
{
    File x = {.path = path};
    open_file(&x);
    const struct { const char *name, *text; } values[] = {
        {"family", "gpt2"}, {"V", strf("%lld", (long long)x.V)}, {"P", strf("%lld", (long long)x.T)},
        {"D", strf("%lld", (long long)x.D)}, {"H", strf("%lld", (long long)x.H)}, {"L", strf("%lld", (long long)x.L)},
        {"F", "4*D"}, {"eps", "1e-5"}, {"drop", ""}, {"first", ""}, {"attention", ""}, {"type", x.size == 4 ? "f32" : "bf16"}};
    ConfigValues v = {0};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        *PUSH(&v) = (ConfigValue){values[i].name, values[i].text};
    const char *stem = text_without(out, ".yaml"), *weights = strf("%s.safetensors", stem ? stem : out);
    Text text;
    template_write(text_open(&text), embedded_find("gen/huggingface/gpt2.yaml")->data, &v, NULL);
    text_close(&text);
    made_check(path, out, &text);
    files_begin(NULL, false);
    write_weights(&x, weights);
    FILE *f = file_begin(out);
    fwrite(text.at, 1, text.n, f);
    file_end(f, out);
    files_end();
    const char *file = quote_terminal(quote_shell(out));
    printf("wrote %s and %s: dpgen check %s, or dpgen %s -o out && make -C out && out/train --weights %s\n",
           quote_terminal(out), quote_terminal(weights), file, file, quote_terminal(quote_shell(weights)));
    return 0;
}
