/* SPDX-License-Identifier: Apache-2.0
 *
 * heads.c: what a published model ends with.  A template writes one head, or two, and `architectures` names another class of
 * the same family: its weights lack what the template trains, and have what nobody takes.
 *
 * A class is known by the end of its name.  Weights that lie in the folder are asked, too: published BERTs are called
 * BertForMaskedLM, and most have the second head all the same.
 */
#include "hf.h"
#include "base/safe.h"
#include <string.h>
#include <unistd.h>

typedef struct { const char *type, *classes, *what, *tensors; } Heads;      /* tensors: of the heads, where none is tied */

static const Heads heads[] = {
    {"bert", "ForPreTraining ForMaskedLM", "the heads of masked words and of the next sentence",
     "cls.predictions.transform.dense.weight cls.seq_relationship.weight bert.pooler.dense.weight"},
    {"vit", "ForImageClassification", "a head of classes", "classifier.weight"},
    {"t5", "ForConditionalGeneration WithLMHeadModel", "a decoder and the head of its words", ""},
    {NULL, "ForCausalLM LMHeadModel", "a head of words", ""}
};

static bool ends_with_one(const char *name, const char *classes)
{
    size_t n = strlen(name);
    for (const char *c = classes, *end; *c; c = end + strspn(end, " ")) {
        end = c + strcspn(c, " ");
        size_t k = (size_t)(end - c);
        if (n >= k && !strncmp(name + n - k, c, k))
            return true;
    }
    return false;
}

/* Without a head: what a tied one needs is there. */
static bool is_bare(const char *name)
{
    return ends_with_one(name, "Model") && !ends_with_one(name, "EncoderModel HeadsModel HeadModel");
}

static bool lists(const SafeFile *f, const char *name)
{
    size_t n = strlen(name);
    for (int i = 0; f && i < f->tensor.n; i++) {
        size_t k = strlen(f->tensor.at[i].name);
        if (k >= n && !strcmp(f->tensor.at[i].name + k - n, name))
            return true;
    }
    return false;
}

static const char *missing(const SafeFile *f, const char *tensors)
{
    for (const char *c = tensors, *end; f && *c; c = end + strspn(end, " ")) {
        end = c + strcspn(c, " ");
        const char *name = strf("%.*s", (int)(end - c), c);
        if (!lists(f, name))
            return name;
    }
    return NULL;
}

void heads_check(const Node *root, const Family *family, bool tied, const char *folder)
{
    const Node *list = node_get(root, "architectures");
    const char *path = folder ? strf("%s/model.safetensors", folder) : NULL;
    const SafeFile *f = path && access(path, R_OK) == 0 ? safe_open(path) : NULL;
    const Heads *h = heads;
    while (h->type && strcmp(h->type, family->type))
        h++;
    const char *missed = missing(f, h->tensors);
    if (!h->type && !tied && f && !lists(f, "lm_head.weight") && !lists(f, "embed_out.weight"))
        missed = "lm_head.weight";
    for (int i = 0; list && list->kind == LIST && i < list->n; i++) {
        const char *name = list->at[i]->kind == SCALAR ? list->at[i]->text : "";
        bool done = ends_with_one(name, h->classes), bare = is_bare(name) && (h->type ? f && !missed && *h->tensors : tied);
        if (!done && !bare)
            bad(list->at[i]->loc, "heads of other classes are written by hand, in the model file and in its section weights",
                "architectures: '%s' lacks %s, which the model file of type '%s' trains", name, h->what, family->type);
        else if (missed)
            bad(list->at[i]->loc, "import its config.json alone, and delete the lines of what is missing from the model file",
                "architectures: these weights of '%s' have no tensor '%s': the model file of type '%s' trains %s", name, missed,
                family->type, h->what);
    }
}
