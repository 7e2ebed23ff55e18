/* SPDX-License-Identifier: Apache-2.0
 *
 * heads.c: what a published model ends with, by the class that `architectures` names.
 *
 * A class is known by the end of its name.  A template writes the heads of some classes; another class of the same family has
 * weights that nobody takes, and lacks what a template trains.  Weights that lie in the folder are asked, too: published BERTs
 * are called BertForMaskedLM, and most have the second head all the same.
 */
#include "hf.h"
#include "base/safe.h"
#include <string.h>
#include <unistd.h>

/* sets: values of the template that are on; tensors: of the heads, where none is tied.  The first row of a type holds where
 * nothing is said. */
typedef struct { const char *types, *classes, *sets, *what, *tensors; } Heads;

#define WORDS "a head of masked words"
#define KINDS "a head of masked words or of classes"
#define ROBERTA "roberta xlm-roberta camembert"
static const Heads heads[] = {
    {"bert", "ForPreTraining", "words next", "heads of masked words, of the next sentence or of classes",
     "cls.predictions.transform.dense.weight cls.seq_relationship.weight bert.pooler.dense.weight"},
    {"bert", "ForMaskedLM", "words", WORDS, "cls.predictions.transform.dense.weight"},
    {"bert", "ForSequenceClassification", "kind", KINDS, "classifier.weight bert.pooler.dense.weight"},
    {"bert", "ForTokenClassification", "tags", KINDS, "classifier.weight"},
    {ROBERTA, "ForMaskedLM", "words", KINDS, "lm_head.dense.weight"},
    {ROBERTA, "ForSequenceClassification", "kind", KINDS, "classifier.out_proj.weight"},
    {ROBERTA, "ForTokenClassification", "tags", KINDS, "classifier.weight"},
    {"electra", "ForMaskedLM", "words", KINDS, "generator_predictions.dense.weight"},
    {"electra", "ForSequenceClassification", "kind", KINDS, "classifier.out_proj.weight"},
    {"electra", "ForTokenClassification", "tags", KINDS, "classifier.weight"},
    {"distilbert", "ForMaskedLM", "words", KINDS, "vocab_transform.weight"},
    {"distilbert", "ForSequenceClassification", "kind", KINDS, "pre_classifier.weight classifier.weight"},
    {"distilbert", "ForTokenClassification", "tags", KINDS, "classifier.weight"},
    {"vit", "ForImageClassification", "", "a head of classes", "classifier.weight"},
    {"t5 mt5", "ForConditionalGeneration WithLMHeadModel", "", "a decoder and the head of its words", ""},
    {NULL, "ForCausalLM LMHeadModel", "", "a head of words", ""}
};

bool has_word(const char *words, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = words; (p = strstr(p, word)); p += n)
        if ((p == words || p[-1] == ' ') && (!p[n] || p[n] == ' '))
            return true;
    return false;
}

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

static bool of_type(const Heads *h, const char *type)
{
    return !h->types || has_word(h->types, type);
}

/* The heads of a class; NULL: none that a template writes.  first: of its type.  Weights that have all of the first are those
 * of the first, whatever their class is called, if it has what the class has. */
static const Heads *heads_of(const Heads *first, const char *name, const SafeFile *f)
{
    const Heads *h = first, *end = heads + sizeof heads / sizeof *heads;
    while (h < end && (h->types != first->types || !ends_with_one(name, h->classes)))
        h++;
    if (h < end)
        return f && h != first && !strncmp(first->sets, h->sets, strlen(h->sets)) && !missing(f, first->tensors) ? first : h;
    return is_bare(name) && f && first->types && *first->tensors && !missing(f, first->tensors) ? first : NULL;
}

static void set_head(const Node *root, const Heads *h, ConfigValues *values)
{
    const Node *names = node_get(root, "id2label");
    bool classes = has_word(h->sets, "kind") || has_word(h->sets, "tags");
    for (const char *c = h->sets, *end; *c; c = end + strspn(end, " ")) {
        end = c + strcspn(c, " ");
        *PUSH(values) = (ConfigValue){strf("%.*s", (int)(end - c), c), "true"};
    }
    if (classes && names && names->kind == MAP && names->n == 1)
        bad(names->loc, "two classes at least, or a head by hand with MeanSquaredError",
            "id2label: one class, whose score is a number that is fitted: dpgen import does not do this");
    if (classes)
        *PUSH(values) = (ConfigValue){"C", strf("%d", names && names->kind == MAP ? names->n : 2)};
}

void heads_read(const Node *root, const Family *family, const char *folder, ConfigValues *values)
{
    const Node *list = node_get(root, "architectures");
    const char *path = folder ? strf("%s/model.safetensors", folder) : NULL, *tie = value_get(values, "tie");
    const SafeFile *f = path && access(path, R_OK) == 0 ? safe_open(path) : NULL;
    bool tied = tie ? value_on(values, "tie") : true;
    const Heads *first = heads, *is;
    while (!of_type(first, family->type))
        first++;
    is = first;
    for (int i = 0; list && list->kind == LIST && i < list->n; i++) {
        const char *name = list->at[i]->kind == SCALAR ? list->at[i]->text : "";
        const Heads *h = heads_of(first, name, f);
        const char *missed = h ? missing(f, h->tensors) : NULL;
        if (!first->types && !tied && f && !lists(f, "lm_head.weight") && !lists(f, "embed_out.weight"))
            missed = "lm_head.weight";
        if (!h && !(is_bare(name) && !first->types && tied))
            bad(list->at[i]->loc, "heads of other classes are written by hand, in the model file and in its section weights",
                "architectures: '%s' lacks %s, which the model file of type '%s' trains", name, first->what, family->type);
        else if (missed)
            bad(list->at[i]->loc, "import its config.json alone, and delete the lines of what is missing from the model file",
                "architectures: these weights of '%s' have no tensor '%s': the model file of type '%s' trains %s", name, missed,
                family->type, first->what);
        is = h ? h : is;
    }
    set_head(root, is, values);
}
