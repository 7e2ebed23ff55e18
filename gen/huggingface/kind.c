/* SPDX-License-Identifier: Apache-2.0
 *
 * kind.c: files that dpgen import does not read, known by their first bytes: what they are, and what to do.
 */
#include "hf.h"
#include <unistd.h>

enum { HEAD = 4096, TAIL = 65536 };     /* the directory of an archive is at its end */
static const char graph[] = "export the model: torch.export.save(torch.export.export(model.train(), (x,)), 'model.pt2')";

static bool has(const char *at, size_t n, const char *text)
{
    size_t k = strlen(text);
    for (size_t i = 0; i + k <= n; i++)
        if (!memcmp(at + i, text, k))
            return true;
    return false;
}

static NORETURN void refuse(const char *path, const char *what, const char *remedy)
{
    fail(EXIT_MODEL, "%s: this is %s; %s", quote_terminal(path), what, remedy);
}

/* The folder of a published model has config.json beside its weights. */
static NORETURN void refuse_safetensors(const char *path)
{
    const char *slash = strrchr(path, '/'), *folder = slash ? strf("%.*s", (int)(slash - path), path) : ".";
    const char *quoted = quote_shell(*folder ? folder : "/");
    refuse(path, "a file of safetensors: weights, which do not say what is computed",
           access(strf("%s/config.json", folder), R_OK) == 0
           ? strf("name its folder, which has a config.json: dpgen import %s", quoted)
           : "put the model's config.json beside it and name the folder, or write a model file whose parameters have these "
             "names, and give the file to out/train --weights");
}

static void check_archive(const char *path, const char *at, size_t n)
{
    if (has(at, n, "models/model.json") || has(at, n, "archive_format"))
        refuse(path, "an archive of torch.export", "let its name end with .pt2");
    if (has(at, n, "/code/") || has(at, n, "constants.pkl"))
        refuse(path, "a program of TorchScript, which is not read", graph);
    if (has(at, n, "data.pkl"))
        refuse(path, "a pickle of PyTorch, which may run any code, and is not read", strf("save weights as safetensors: "
               "safetensors.torch.save_file(torch.load('FILE', weights_only=True), 'model.safetensors'); a model that is no "
               "published one: %s", graph));
    refuse(path, "a zip archive, which is not read", graph);
}

void import_kind(const char *path)
{
    static const struct { const char *magic; size_t n, from; const char *what, *remedy; } kinds[] = {
        {"GGUF", 4, 0, "a file of GGUF, whose weights may be quantised", "name the folder of the published model instead"},
        {"\x89HDF", 4, 0, "a file of HDF5, as Keras has them", "export the model as ONNX"},
        {"TFL3", 4, 4, "a model of TensorFlow Lite", "export the model as ONNX"},
        {"\x80\x02", 2, 0, "a pickle of an old PyTorch, which may run any code, and is not read",
         "save its weights as safetensors"}
    };
    static char at[HEAD + TAIL];
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(at, 1, HEAD, f) : 0, more = 0;
    if (f && (fseek(f, -TAIL, SEEK_END) == 0 || fseek(f, 0, SEEK_SET) == 0))
        more = fread(at + n, 1, TAIL, f);
    if (f)
        fclose(f);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (n > kinds[i].from + kinds[i].n && !memcmp(at + kinds[i].from, kinds[i].magic, kinds[i].n))
            refuse(path, kinds[i].what, kinds[i].remedy);
    if (n > 4 && !memcmp(at, "PK\3\4", 4))
        check_archive(path, at, n + more);
    const uint64_t length = n > 8 ? number_little((const unsigned char *)at, 8) : 0;
    if (n > 8 && at[8] == '{' && length > 1 && length < 1ull << 40 && memchr(at, 0, 8))
        refuse_safetensors(path);
    if (!llmc_knows(path) && n > 0 && memchr(at, 0, n))
        refuse(path, "no model that dpgen knows", "graphs are read from .onnx and .pt2, published models from the folder of "
               "their config.json");
}
